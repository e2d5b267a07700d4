#include "models/import/onnx/ops/standard_ops.h"

namespace lathe::onnx {

importing::OpTable standard_ops() {
  importing::OpTable table;
  for (const auto& group : {arithmetic_ops(),   comparison_ops(),
                            function_ops(),     activation_ops(),
                            shape_ops(),        source_ops(),
                            view_ops(),         joining_ops(),
                            indexing_ops(),     sorting_ops(),
                            reduction_ops(),    product_ops(),
                            norm_ops(),         convolution_ops(),
                            pool_ops(),         resize_ops(),
                            attention_ops(),    loss_ops(),
                            quantization_ops(), loop_ops(),
                            recurrent_ops(),    linear_attention_ops(),
                            sampling_ops(),     region_ops(),
                            signal_ops(),       text_ops()})
    table.add("", group);
  table.add("com.microsoft", contrib_ops());
  table.add("com.microsoft", group_query_ops());
  table.add("ai.onnx.preview", preview_ops());
  table.add("ai.onnx.preview.training", optimizer_ops());
  return table;
}

}  // namespace lathe::onnx
