#pragma once

#include <span>

#include "models/import/op_table.h"

/// The ops of ATen, and the functions of Python's operator module on sizes. Each group is a file in a folder of this
/// one, with functions that build Lathe ops, and a table of them.
namespace lathe::pt2 {

/// Returns all ops.
importing::OpTable aten_ops();

/// The groups of the domain aten.
std::span<const importing::OpRecord> aten_arithmetic_ops();
std::span<const importing::OpRecord> aten_function_ops();
std::span<const importing::OpRecord> aten_float_ops();
std::span<const importing::OpRecord> aten_integer_ops();
std::span<const importing::OpRecord> aten_special_ops();
std::span<const importing::OpRecord> aten_quantization_ops();
std::span<const importing::OpRecord> aten_activation_ops();
std::span<const importing::OpRecord> aten_comparison_ops();
std::span<const importing::OpRecord> aten_view_ops();
std::span<const importing::OpRecord> aten_diagonal_ops();
std::span<const importing::OpRecord> aten_joining_ops();
std::span<const importing::OpRecord> aten_stacking_ops();
std::span<const importing::OpRecord> aten_conversion_ops();
std::span<const importing::OpRecord> aten_source_ops();
std::span<const importing::OpRecord> aten_indexing_ops();
std::span<const importing::OpRecord> aten_scatter_ops();
std::span<const importing::OpRecord> aten_reduction_ops();
std::span<const importing::OpRecord> aten_scan_ops();
std::span<const importing::OpRecord> aten_ordering_ops();
std::span<const importing::OpRecord> aten_quantile_ops();
std::span<const importing::OpRecord> aten_product_ops();
std::span<const importing::OpRecord> aten_sum_product_ops();
std::span<const importing::OpRecord> aten_matrix_ops();
std::span<const importing::OpRecord> aten_attention_ops();
std::span<const importing::OpRecord> aten_norm_ops();
std::span<const importing::OpRecord> aten_convolution_ops();
std::span<const importing::OpRecord> aten_pool_ops();
std::span<const importing::OpRecord> aten_resize_ops();
std::span<const importing::OpRecord> aten_window_ops();
std::span<const importing::OpRecord> aten_grid_ops();
std::span<const importing::OpRecord> aten_loss_ops();
std::span<const importing::OpRecord> aten_margin_ops();
std::span<const importing::OpRecord> aten_distance_ops();
std::span<const importing::OpRecord> aten_recurrent_ops();
std::span<const importing::OpRecord> aten_bag_ops();
std::span<const importing::OpRecord> aten_complex_ops();
std::span<const importing::OpRecord> aten_fourier_ops();
std::span<const importing::OpRecord> aten_signal_ops();
std::span<const importing::OpRecord> aten_size_ops();
/// Other names of the ops above.
std::span<const importing::OpAlias> aten_aliases();
/// The group of the domain higher_order.
std::span<const importing::OpRecord> control_flow_ops();
/// The group of the domain transformers, which are ops of the library of this name.
std::span<const importing::OpRecord> transformers_ops();
/// The group of the domain quantized_decomposed, which are ops of PyTorch's export of quantized models.
std::span<const importing::OpRecord> quantized_decomposed_ops();
/// The groups of the domains _operator, math and torch.
std::span<const importing::OpRecord> operator_ops();
std::span<const importing::OpRecord> math_ops();
std::span<const importing::OpRecord> symbolic_ops();

}  // namespace lathe::pt2
