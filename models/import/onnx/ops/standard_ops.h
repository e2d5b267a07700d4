#pragma once

#include <span>

#include "models/import/op_table.h"

/// The ops of ai.onnx, and some of com.microsoft and the preview domains. Each group is a file in a folder of this
/// one, with functions that build Lathe ops, and a table of them.
namespace lathe::onnx {

/// Returns all ops.
importing::OpTable standard_ops();

/// The groups.
std::span<const importing::OpRecord> arithmetic_ops();
std::span<const importing::OpRecord> comparison_ops();
std::span<const importing::OpRecord> function_ops();
std::span<const importing::OpRecord> activation_ops();
std::span<const importing::OpRecord> shape_ops();
std::span<const importing::OpRecord> source_ops();
std::span<const importing::OpRecord> view_ops();
std::span<const importing::OpRecord> joining_ops();
std::span<const importing::OpRecord> indexing_ops();
std::span<const importing::OpRecord> sorting_ops();
std::span<const importing::OpRecord> reduction_ops();
std::span<const importing::OpRecord> product_ops();
std::span<const importing::OpRecord> norm_ops();
std::span<const importing::OpRecord> convolution_ops();
std::span<const importing::OpRecord> pool_ops();
std::span<const importing::OpRecord> resize_ops();
std::span<const importing::OpRecord> attention_ops();
std::span<const importing::OpRecord> loss_ops();
std::span<const importing::OpRecord> quantization_ops();
std::span<const importing::OpRecord> loop_ops();
std::span<const importing::OpRecord> recurrent_ops();
std::span<const importing::OpRecord> linear_attention_ops();
std::span<const importing::OpRecord> sampling_ops();
std::span<const importing::OpRecord> region_ops();
std::span<const importing::OpRecord> signal_ops();
std::span<const importing::OpRecord> text_ops();
std::span<const importing::OpRecord> contrib_ops();
std::span<const importing::OpRecord> group_query_ops();
std::span<const importing::OpRecord> preview_ops();
std::span<const importing::OpRecord> optimizer_ops();

}  // namespace lathe::onnx
