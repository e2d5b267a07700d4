#include "models/import/pt2/ops/aten_ops.h"

namespace lathe::pt2 {

importing::OpTable aten_ops() {
  importing::OpTable table;
  for (const auto& group :
       {aten_arithmetic_ops(), aten_function_ops(),   aten_float_ops(),        aten_special_ops(),
        aten_integer_ops(),    aten_margin_ops(),     aten_quantization_ops(), aten_activation_ops(),
        aten_comparison_ops(), aten_view_ops(),       aten_diagonal_ops(),     aten_joining_ops(),
        aten_stacking_ops(),   aten_conversion_ops(), aten_source_ops(),       aten_indexing_ops(),
        aten_scatter_ops(),    aten_reduction_ops(),  aten_scan_ops(),         aten_ordering_ops(),
        aten_quantile_ops(),   aten_product_ops(),    aten_sum_product_ops(),  aten_matrix_ops(),
        aten_attention_ops(),  aten_norm_ops(),       aten_convolution_ops(),  aten_pool_ops(),
        aten_resize_ops(),     aten_window_ops(),     aten_grid_ops(),         aten_loss_ops(),
        aten_distance_ops(),   aten_recurrent_ops(),  aten_bag_ops(),          aten_complex_ops(),
        aten_fourier_ops(),    aten_signal_ops(),     aten_size_ops()})
    table.add("aten", group);
  table.add_aliases("aten", aten_aliases());
  table.add("higher_order", control_flow_ops());
  table.add("_operator", operator_ops());
  table.add("math", math_ops());
  table.add("torch", symbolic_ops());
  table.add("transformers", transformers_ops());
  table.add("quantized_decomposed", quantized_decomposed_ops());
  return table;
}

}  // namespace lathe::pt2
