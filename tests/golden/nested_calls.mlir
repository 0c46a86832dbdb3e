module @_lambda_ {
  func.func public @main(%arg0: tensor<3x3xf32>, %arg1: tensor<3x3xf32>) -> (tensor<3x3xf32>) {
    %5 = func.call @_lambda_(%arg0, %arg1) : (tensor<3x3xf32>, tensor<3x3xf32>) -> (tensor<3x3xf32>)
    %6 = func.call @_lambda_(%5, %arg1) : (tensor<3x3xf32>, tensor<3x3xf32>) -> (tensor<3x3xf32>)
    return %6 : tensor<3x3xf32>
  }
  func.func private @_lambda_(%1: tensor<3x3xf32>, %2: tensor<3x3xf32>) -> (tensor<3x3xf32>) {
    %3 = stablehlo.dot_general %1, %2, contracting_dims = [1] x [0] : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
    %4 = stablehlo.sine %3 : tensor<3x3xf32>
    return %4 : tensor<3x3xf32>
  }
}
