#include <fmt/core.h>

#include <numeric>

#include "frontend/ops/spatial/pooling.h"
#include "models/import/onnx/ops/op_functions.h"
#include "models/import/onnx/ops/standard_ops.h"
#include "models/import/ops/norm_functions.h"

namespace lathe::onnx {

namespace {

constexpr double default_epsilon = 1e-5;

/// Norms are computed in f32 or f64. stash_type 1 is f32, which all statistics of Lathe have at least.
void require_stash_type(const OpCall& call) {
  if (const std::int64_t type = call.integer("stash_type", 1); type != 1)
    call.fail(fmt::format("the attribute stash_type is {}; 1 is supported", type), "import_attribute");
}

Ints axes_after(int axis, int rank) {
  Ints axes(static_cast<std::size_t>(rank - axis));
  std::iota(axes.begin(), axes.end(), axis);
  return axes;
}

Results layer_norm_op(const OpCall& call) {
  require_stash_type(call);
  const Tensor x = call.tensor(0);
  const int axis = call.axis(call.integer("axis", -1), x.rank());
  const double epsilon = call.real("epsilon", default_epsilon);
  const Tensor y =
      importing::layer_norm_over(x, axis, call.tensor(1), call.has(2) ? call.tensor(2) : Tensor(), epsilon);
  if (!call.reads(1) && !call.reads(2)) return {y};
  const Ints axes = axes_after(axis, x.rank());
  const Tensor wide = x.to(at_least_f32(x.dtype()));
  return {y, wide.mean(axes_of(axes), true), rsqrt(wide.var(axes_of(axes), true, 0) + epsilon)};
}

Results rms_norm_op(const OpCall& call) {
  require_stash_type(call);
  const Tensor x = call.tensor(0);
  const int axis = call.axis(call.integer("axis", -1), x.rank());
  const double epsilon = call.real("epsilon", default_epsilon);
  return {importing::rms_norm_over(x, axis, call.tensor(1), epsilon)};
}

Results group_norm_op(const OpCall& call) {
  require_stash_type(call);
  const Tensor x = call.tensor(0);
  const std::int64_t groups = call.integer("num_groups");
  if (groups < 1) call.fail("num_groups is not positive", "import_attribute");
  const auto per_channel = [&](std::size_t i) {
    const Tensor weight = call.tensor(i);
    // Before version 21 there was one weight for each group.
    if (call.version() >= 21) return weight;
    const std::optional<Dim> channels = x.size(1).divided_by(groups);
    if (!channels || !channels->value()) call.fail("the channels do not divide into the groups", "import_size");
    return weight.repeat_interleave(*channels->value(), 0);
  };
  return {group_norm(x, groups, per_channel(1), per_channel(2), call.real("epsilon", default_epsilon))};
}

/// A group for each channel.
Results instance_norm(const OpCall& call) {
  const Tensor x = call.tensor(0);
  if (x.rank() < 3 || !x.size(1).value()) call.fail("the operand has no known number of channels", "import_size");
  return {group_norm(x, *x.size(1).value(), call.tensor(1), call.tensor(2), call.real("epsilon", default_epsilon))};
}

/// With running statistics, or, in training mode, with those of the batch, which update the running ones.
Results batch_norm(const OpCall& call) {
  const Tensor x = call.tensor(0);
  if (x.rank() < 2) call.fail("the operand has no channels", "import_operand");
  const double epsilon = call.real("epsilon", default_epsilon), momentum = call.real("momentum", 0.9);
  const auto normalized = [&](const Tensor& mean, const Tensor& variance) {
    return importing::batch_norm_with(x, mean, variance, call.tensor(1), call.tensor(2), epsilon);
  };
  if (!call.flag("training_mode", false)) return {normalized(call.tensor(3), call.tensor(4))};
  Ints axes{0};
  for (int i = 2; i < x.rank(); ++i) axes.push_back(i);
  const Tensor mean = x.mean(axes_of(axes)), variance = x.var(axes_of(axes), false, 0);
  const auto running = [&](std::size_t i, const Tensor& of_batch) {
    return call.tensor(i) * momentum + of_batch.to(call.dtype(i)) * (1 - momentum);
  };
  return {normalized(mean, variance), running(3, mean), running(4, variance)};
}

/// Before opset 9, statistics may be those of each place in a channel.
Results old_batch_norm(const OpCall& call) {
  if (!call.flag("spatial", true)) call.fail("the attribute spatial is 0", "import_attribute");
  return batch_norm(call);
}

/// x / (bias + alpha / size * sum of squares over `size` neighbouring channels)^beta
Results local_response_norm(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const std::int64_t size = call.integer("size");
  if (size < 1 || x.rank() < 2) call.fail("the size is not positive, or there are no channels", "import_attribute");
  const Tensor squares = pad(x * x, 1, (size - 1) / 2, size - 1 - (size - 1) / 2);
  Tensor sum = squares.slice(1, 0, x.size(1));
  for (std::int64_t i = 1; i < size; ++i) sum = sum + squares.slice(1, i, x.size(1) + Dim(i));
  const double scale = call.real("alpha", 1e-4) / static_cast<double>(size);
  return {x / (sum * scale + call.real("bias", 1)).pow(call.real("beta", 0.75))};
}

Results mean_variance_norm(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const Ints axes = axes_from_front(call, call.integers("axes", {0, 2, 3}), x.rank());
  const Tensor centered = x - x.mean(axes_of(axes), true);
  return {centered / (sqrt((centered * centered).mean(axes_of(axes), true)) + 1e-9)};
}

/// Vectors of norm 0 stay 0.
Results lp_norm(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const int axis = call.axis(call.integer("axis", -1), x.rank());
  const std::int64_t p = call.integer("p", 2);
  if (p != 1 && p != 2) call.fail(fmt::format("the attribute p is {}, not 1 or 2", p), "import_attribute");
  const Tensor norm = p == 1 ? abs(x).sum(axis, true) : sqrt((x * x).sum(axis, true));
  return {x / where(norm == 0, 1, norm)};
}

}  // namespace

std::span<const OpRecord> norm_ops() {
  static constexpr OpRecord records[] = {
      {"LayerNormalization", 17, latest, "axis epsilon stash_type", layer_norm_op},
      {"RMSNormalization", 23, latest, "axis epsilon stash_type", rms_norm_op},
      // An op of ONNX Runtime without a domain of its own.
      {"SimplifiedLayerNormalization", 1, latest, "axis epsilon stash_type", rms_norm_op},
      {"GroupNormalization", 18, 20, "epsilon num_groups", group_norm_op},
      {"GroupNormalization", 21, latest, "epsilon num_groups stash_type", group_norm_op},
      {"InstanceNormalization", 6, latest, "epsilon", instance_norm},
      {"BatchNormalization", 7, 8, "epsilon momentum spatial", old_batch_norm},
      {"BatchNormalization", 9, 13, "epsilon momentum", batch_norm},
      {"BatchNormalization", 14, latest, "epsilon momentum training_mode", batch_norm},
      {"LRN", 1, latest, "alpha beta bias size", local_response_norm},
      {"MeanVarianceNormalization", 9, latest, "axes", mean_variance_norm},
      {"LpNormalization", 1, latest, "axis p", lp_norm},
  };
  return records;
}

}  // namespace lathe::onnx
