module @_lambda_ {
  func.func public @main(%arg0: tensor<f32>, %arg1: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
    %1 = stablehlo.sine %arg0 : tensor<f32>
    %6 = func.call @pushforward_scaled(%arg0, %arg1) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
    return %1, %6 : tensor<f32>, tensor<f32>
  }
  func.func private @pushforward_scaled(%2: tensor<f32>, %3: tensor<f32>) -> (tensor<f32>) {
    %4 = stablehlo.constant dense<10.0> : tensor<f32>
    %5 = stablehlo.multiply %4, %3 : tensor<f32>
    return %5 : tensor<f32>
  }
}
