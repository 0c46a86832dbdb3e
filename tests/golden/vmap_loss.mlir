module @loss {
  func.func public @main(%arg0: tensor<3x4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<5x2x3xf32>) -> (tensor<5xf32>) {
    %1 = stablehlo.dot_general %arg2, %arg0, contracting_dims = [2] x [0] : (tensor<5x2x3xf32>, tensor<3x4xf32>) -> tensor<5x2x4xf32>
    %2 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<4xf32>) -> tensor<2x4xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [1, 2] : (tensor<2x4xf32>) -> tensor<5x2x4xf32>
    %4 = stablehlo.add %1, %3 : tensor<5x2x4xf32>
    %5 = stablehlo.multiply %4, %4 : tensor<5x2x4xf32>
    %6 = stablehlo.constant dense<0.0> : tensor<f32>
    %7 = stablehlo.reduce(%5 init: %6) applies stablehlo.add across dimensions = [1, 2] : (tensor<5x2x4xf32>, tensor<f32>) -> tensor<5xf32>
    %8 = stablehlo.constant dense<8.0> : tensor<5xf32>
    %9 = stablehlo.divide %7, %8 : tensor<5xf32>
    return %9 : tensor<5xf32>
  }
}
