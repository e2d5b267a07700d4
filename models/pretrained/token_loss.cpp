#include "models/pretrained/token_loss.h"

#include "frontend/ops/ops.h"

namespace lathe::pretrained {

Graph token_loss(const CausalLm& model, std::string_view name, const Dim& B, const Dim& T, bool packed, DType dtype) {
  Graph g(name);
  const Shape shape{B, T};
  TokenInputs inputs{.ids = g.input("input_ids", i64, shape), .dtype = dtype};
  const Tensor labels = g.input("labels", i64, shape), weight = g.input("weight", f64, {});
  if (packed) {
    inputs.positions = g.input("position_ids", i64, shape);
    inputs.segments = g.input("segments", i64, shape);
  } else if (model.depends_on_length()) {
    inputs.lengths = g.input("lengths", i64, {B});
  }
  if (model.router_loss() != 0) {
    // Padding starts after the last label of a row.
    const Tensor has_label = (labels != -100).to(i64);
    inputs.routed = (has_label.sum(1, true) - cumsum(has_label, 1) + has_label > 0).to(i64);
  }
  g.output("loss", model.loss(inputs, labels, weight));
  return g;
}

}  // namespace lathe::pretrained
