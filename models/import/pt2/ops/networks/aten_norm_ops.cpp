#include <fmt/core.h>

#include <numeric>

#include "frontend/ops/spatial/pooling.h"
#include "models/import/ops/norm_functions.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

namespace lathe::pt2 {

namespace {

constexpr double default_eps = 1e-5;

/// Returns the first of the normalized dims, whose sizes operand 1 has.
int first_normalized(const OpCall& call, const Tensor& x) {
  const std::vector<Dim> sizes = call.dims(1, "the normalized shape");
  const int first = x.rank() - static_cast<int>(sizes.size());
  if (first < 0 || first == x.rank())
    call.fail(fmt::format("{} normalized dims for rank {}", sizes.size(), x.rank()), "import_operand");
  for (int i = first; i < x.rank(); ++i)
    if (x.size(i).equals(sizes[static_cast<std::size_t>(i - first)]) == Dim::Answer::no)
      call.fail("the normalized shape differs from the shape of the operand", "import_operand");
  return first;
}

Ints axes_from(int first, int rank) {
  Ints axes(static_cast<std::size_t>(rank - first));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

/// Results 1 and 2 are the mean and the reciprocal of the deviation.
Results layer_norm_op(const OpCall& call) {
  call.ignore({"cudnn_enable"});
  const Tensor x = call.tensor(0);
  const int first = first_normalized(call, x);
  const double eps = real_argument(call, "eps", default_eps);
  const Tensor y = importing::layer_norm_over(x, first, optional_tensor(call, 2), optional_tensor(call, 3), eps);
  if (!call.reads(1) && !call.reads(2)) return {y};
  const Axes axes = axes_of(axes_from(first, x.rank()));
  const Tensor wide = x.to(at_least_f32(x.dtype()));
  return {y, wide.mean(axes, true), rsqrt(wide.var(axes, true, 0) + eps)};
}

/// Without the argument eps, it is the distance from 1 to the next number of the dtype.
Results rms_norm_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const double fallback = x.dtype() == f64    ? std::numeric_limits<double>::epsilon()
                          : x.dtype() == bf16 ? 0x1p-7
                          : x.dtype() == f16  ? 0x1p-10
                                              : std::numeric_limits<float>::epsilon();
  return {importing::rms_norm_over(x, first_normalized(call, x), optional_tensor(call, 2),
                                   real_argument(call, "eps", fallback))};
}

/// Weights and biases of channels; those that are not given are 1 and 0.
Tensor group_normalized(const OpCall& call, const Tensor& x, std::int64_t groups) {
  if (x.rank() < 2 || groups < 1) call.fail("the operand has no channels, or there is no group", "import_operand");
  const auto per_channel = [&](std::size_t i, double fallback) {
    return call.has(i) ? call.tensor(i) : call.graph().full({x.size(1)}, fallback, x.dtype());
  };
  return group_norm(x, groups, per_channel(1, 1), per_channel(2, 0), real_argument(call, "eps", default_eps));
}
Results group_norm_op(const OpCall& call) {
  call.ignore({"cudnn_enabled"});
  return {group_normalized(call, call.tensor(0), call.integer("num_groups"))};
}
/// N, C and HxW are the sizes of the operand.
Results native_group_norm(const OpCall& call) {
  return {group_normalized(call, call.tensor(0), call.integer("group"))};
}

Tensor with_running_statistics(const OpCall& call) {
  const Tensor x = call.tensor(0);
  if (x.rank() < 2) call.fail("the operand has no channels", "import_operand");
  return importing::batch_norm_with(x, call.tensor(3), call.tensor(4), optional_tensor(call, 1),
                                    optional_tensor(call, 2), real_argument(call, "eps", default_eps));
}

[[noreturn]] void refuse_update(const OpCall& call, std::string_view op) {
  call.fail(fmt::format("{} of a model in training mode updates its statistics in place", op), "import_unsupported",
            "call run_decompositions() on the exported program, or export the model after model.eval()");
}

/// A group for each channel, or the running statistics.
Results instance_norm_op(const OpCall& call) {
  call.ignore({"cudnn_enabled", "momentum"});
  const Tensor x = call.tensor(0);
  if (x.rank() < 3 || !x.size(1).value()) call.fail("the operand has no known number of channels", "import_size");
  if (!call.flag("use_input_stats", true)) return {with_running_statistics(call)};
  if (call.has(3)) refuse_update(call, "instance_norm");
  return {group_normalized(call, x, *x.size(1).value())};
}

/// The statistics of a batch for each channel, in at least f32.
struct BatchStatistics {
  Tensor mean, variance;
  Dim count = 1;  ///< of the elements of a channel
};
BatchStatistics statistics_of(const OpCall& call) {
  const Tensor x = call.tensor(0);
  if (x.rank() < 2) call.fail("the operand has no channels", "import_operand");
  Ints axes{0};
  Dim count = x.size(0);
  for (int i = 2; i < x.rank(); ++i) axes.push_back(i), count = count * x.size(i);
  const Tensor wide = x.to(at_least_f32(x.dtype()));
  return {wide.mean(axes_of(axes)), wide.var(axes_of(axes), false, 0), count};
}
/// Returns the normalized operand, the mean, and the reciprocal of the deviation.
Results normalized(const OpCall& call, const BatchStatistics& batch) {
  const double eps = real_argument(call, "eps", default_eps);
  const Tensor y = importing::batch_norm_with(call.tensor(0), batch.mean, batch.variance, optional_tensor(call, 1),
                                              optional_tensor(call, 2), eps);
  return {y, batch.mean, rsqrt(batch.variance + eps)};
}

Results batch_norm_op(const OpCall& call) {
  call.ignore({"cudnn_enabled", "momentum"});
  if (!call.flag("training", false)) return {with_running_statistics(call)};
  if (call.has(3)) refuse_update(call, "batch_norm");
  return {normalized(call, statistics_of(call))[0]};
}
Results core_batch_norm(const OpCall& call) {
  call.ignore({"momentum"});
  return {with_running_statistics(call)};
}

/// Without running statistics, those of the batch are used.
Results own_batch_norm(const OpCall& call) {
  call.ignore({"momentum"});
  if (!call.flag("training", true)) call.fail("the argument training is false, and there are no running statistics");
  return normalized(call, statistics_of(call));
}

/// Normalizes by the statistics of the batch, and updates the running ones: results 3 and 4.
Results training_batch_norm(const OpCall& call) {
  if (!call.flag("training", true))
    return {with_running_statistics(call), Value(), Value(), call.operand(3), call.operand(4)};
  const double momentum = real_argument(call, "momentum", 0.1);
  const BatchStatistics batch = statistics_of(call);
  Results results = normalized(call, batch);
  // The running variance is that of a sample: divided by one less.
  const Tensor n = call.graph().dim_value(batch.count, f64);
  const Tensor sample = batch.variance * (n / (n - 1.0)).to(batch.variance.dtype());
  for (const auto& [i, of_batch] : {std::pair(std::size_t{3}, batch.mean), std::pair(std::size_t{4}, sample)})
    results.emplace_back(call.tensor(i) * (1 - momentum) + of_batch.to(call.dtype(i)) * momentum);
  return results;
}

/// v * g / norm(v), with a norm for each index of a dim, or one of all elements for the dim -1. Result 1 is the norm.
Results weight_norm(const OpCall& call) {
  const Tensor v = call.tensor(0), g = call.tensor(1);
  const std::int64_t given = call.integer("dim", 0);
  Ints axes;
  for (int i = 0; i < v.rank(); ++i)
    if (given == -1 || i != call.axis(given, v.rank())) axes.push_back(i);
  const Tensor norm = given == -1 ? v.norm() : axes.empty() ? v.abs() : v.norm(axes_of(axes), true);
  return {v * (g / norm), norm};
}

}  // namespace

std::span<const OpRecord> aten_norm_ops() {
  constexpr std::string_view statistics = "input weight bias running_mean running_var";
  static constexpr OpRecord records[] = {
      aten("layer_norm", "input normalized_shape weight bias", "eps cudnn_enable", layer_norm_op),
      aten("native_layer_norm", "input normalized_shape weight bias", "eps", layer_norm_op),
      aten("rms_norm", "input normalized_shape weight", "eps", rms_norm_op),
      aten("_fused_rms_norm", "input normalized_shape weight", "eps", rms_norm_op),
      aten("group_norm", "input weight bias", "num_groups eps cudnn_enabled", group_norm_op),
      aten("native_group_norm", "input weight bias N C HxW", "group eps", native_group_norm),
      aten("instance_norm", statistics, "use_input_stats momentum eps cudnn_enabled", instance_norm_op),
      aten("_weight_norm", "v g", "dim", weight_norm),
      aten("_weight_norm_interface", "v g", "dim", weight_norm),
      aten("batch_norm", statistics, "training momentum eps cudnn_enabled", batch_norm_op),
      aten("_native_batch_norm_legit_no_training", statistics, "momentum eps", core_batch_norm),
      aten("_native_batch_norm_legit.no_stats", "input weight bias", "training momentum eps", own_batch_norm),
      aten("_native_batch_norm_legit_functional", statistics, "training momentum eps", training_batch_norm),
  };
  return records;
}

}  // namespace lathe::pt2
