module @masked {
  func.func public @main(%arg0: tensor<f32>) -> (tensor<f32>) {
    %1 = stablehlo.constant dense<0.0> : tensor<f32>
    %2 = stablehlo.compare GT, %arg0, %1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %3 = stablehlo.sqrt %arg0 : tensor<f32>
    %4 = stablehlo.bitcast_convert %arg0 : (tensor<f32>) -> tensor<i32>
    %5 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.compare GT, %4, %5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %7 = stablehlo.constant dense<8388608> : tensor<i32>
    %8 = stablehlo.compare LT, %4, %7, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %9 = stablehlo.and %6, %8 : tensor<i1>
    %10 = stablehlo.convert %4 : (tensor<i32>) -> tensor<f32>
    %11 = stablehlo.constant dense<2.0> : tensor<f32>
    %12 = stablehlo.multiply %10, %11 : tensor<f32>
    %13 = stablehlo.sqrt %12 : tensor<f32>
    %14 = stablehlo.constant dense<0x1A000000> : tensor<f32>
    %15 = stablehlo.multiply %13, %14 : tensor<f32>
    %16 = stablehlo.select %9, %15, %3 : tensor<i1>, tensor<f32>
    %17 = stablehlo.constant dense<0.5> : tensor<f32>
    %18 = stablehlo.divide %17, %16 : tensor<f32>
    %19 = stablehlo.constant dense<1.0> : tensor<f32>
    %20 = stablehlo.select %2, %19, %1 : tensor<i1>, tensor<f32>
    %21 = stablehlo.multiply %20, %18 : tensor<f32>
    %22 = stablehlo.select %2, %21, %1 : tensor<i1>, tensor<f32>
    return %22 : tensor<f32>
  }
}
