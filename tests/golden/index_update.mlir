module @_lambda_ {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<i32>) -> (tensor<2x2xf32>) {
    %1 = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.compare LT, %arg1, %1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %3 = stablehlo.constant dense<2> : tensor<i32>
    %4 = stablehlo.add %arg1, %3 : tensor<i32>
    %5 = stablehlo.select %2, %4, %arg1 : tensor<i1>, tensor<i32>
    %6 = stablehlo.reshape %5 : (tensor<i32>) -> tensor<1xi32>
    %7 = stablehlo.constant dense<1.0> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %12 = "stablehlo.scatter"(%arg0, %6, %8) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [0], input_batching_dims = [], scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>, indices_are_sorted = true, unique_indices = true}> ({
^bb0(%9: tensor<f32>, %10: tensor<f32>):
%11 = stablehlo.add %9, %10 : tensor<f32>
stablehlo.return %11 : tensor<f32>
}) : (tensor<2x3xf32>, tensor<1xi32>, tensor<3xf32>) -> tensor<2x3xf32>
    %13 = stablehlo.slice %12 [0:2:1, 1:3:1] : (tensor<2x3xf32>) -> tensor<2x2xf32>
    return %13 : tensor<2x2xf32>
  }
}
