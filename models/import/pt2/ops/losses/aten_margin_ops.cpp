#include <fmt/core.h>

#include "models/import/pt2/ops/aten_ops.h"
#include "models/import/pt2/ops/losses/loss_reduction.h"

/// Losses that compare the scores of classes with those of the targets: x [N, C], or [C] for one example.
namespace lathe::pt2 {

namespace {

/// The sum over the classes but the target of max(0, margin - x[target] + x[i])^p * weight[target], divided by the
/// number of classes.
Results multi_margin(const OpCall& call) {
  const double p = real_argument(call, "p", 1), margin = real_argument(call, "margin", 1);
  if (p != 1 && p != 2) call.fail(fmt::format("the argument p is {}, not 1 or 2", p), "import_attribute");
  const Tensor x = call.tensor(0), target = x.rank() == 1 ? call.tensor(1).reshape({}) : call.tensor(1);
  const Tensor own = take_along(x, target.unsqueeze(-1), -1);
  Tensor losses = relu(x - own + margin);
  if (p == 2) losses = losses * losses;
  if (call.has(2)) losses = losses * gather(call.tensor(2), target).unsqueeze(-1);
  const Tensor is_own = call.graph().arange(x.size(-1).unnamed(), i64) == target.unsqueeze(-1);
  return reduced_loss(call, where(is_own, 0, losses).mean(-1));
}

/// The targets are the classes before the first -1. The sum of max(0, 1 - x[target] + x[i]) over all targets and all
/// other classes, divided by the number of classes. Result 1 says which classes are targets.
Results multilabel_margin(const OpCall& call) {
  const Tensor x = call.tensor(0), given = call.tensor(1);
  const Dim classes = x.size(-1).unnamed();
  const Tensor numbers = call.graph().arange(classes, i64), count = call.graph().dim_value(classes);
  const Tensor end = where(given == -1, numbers, count).min(-1, true), counts = numbers < end;
  const Tensor targets = where(counts, given, 0);
  const Tensor own = take_along(x, targets, -1).unsqueeze(-1);                        // [.., target, 1]
  const Tensor is_class = (targets.unsqueeze(-1) == numbers) & counts.unsqueeze(-1);  // [.., target, class]
  const Tensor is_target = is_class.any(-2), others = counts.unsqueeze(-1) & ~is_target.unsqueeze(-2);
  const Tensor losses = where(others, relu(x.unsqueeze(-2) - own + 1.0), 0).sum(-1).sum(-1) / count.to(x.dtype());
  return {reduced_by(reduction_of(call), losses), is_target.to(x.dtype())};
}

}  // namespace

std::span<const OpRecord> aten_margin_ops() {
  static constexpr OpRecord records[] = {
      aten("multi_margin_loss", "self target weight", "p margin reduction", multi_margin),
      aten("multilabel_margin_loss", "self target", "reduction", multilabel_margin),
      aten("multilabel_margin_loss_forward", "self target", "reduction", multilabel_margin),
  };
  return records;
}

}  // namespace lathe::pt2
