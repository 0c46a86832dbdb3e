module @_lambda_ {
  func.func public @main(%arg0: tensor<f32>) -> (tensor<f32>) {
    %1 = stablehlo.constant dense<1.0> : tensor<f32>
    %2:2 = stablehlo.optimization_barrier %arg0, %1 : tensor<f32>, tensor<f32>
    %10 = func.call @transpose_recompute_jvp__lambda_(%2#0, %2#1) : (tensor<f32>, tensor<f32>) -> (tensor<f32>)
    return %10 : tensor<f32>
  }
  func.func private @transpose_recompute_jvp__lambda_(%3: tensor<f32>, %4: tensor<f32>) -> (tensor<f32>) {
    %5 = stablehlo.sine %3 : tensor<f32>
    %6 = stablehlo.cosine %3 : tensor<f32>
    %7 = stablehlo.cosine %5 : tensor<f32>
    %8 = stablehlo.multiply %4, %7 : tensor<f32>
    %9 = stablehlo.multiply %8, %6 : tensor<f32>
    return %9 : tensor<f32>
  }
}
