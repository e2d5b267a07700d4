#include "frontend/nn/attention/relative_bias.h"

#include <cmath>

#include "frontend/nn/require_option.h"
#include "frontend/ops/ops.h"

namespace lathe::nn {

namespace {

/// Number of buckets per direction.
std::int64_t side_of(const RelativeBiasOptions& options) {
  return options.bidirectional ? options.buckets / 2 : options.buckets;
}

RelativeBiasOptions checked(const RelativeBiasOptions& options, const Where& at) {
  const auto require = [&](bool holds, std::string_view name, std::int64_t value, std::string_view hint) {
    require_option(at, "relative_bias", "relative_bias_options", holds, name, value, hint);
  };
  const std::int64_t side = side_of(options);
  require(side >= 2, "buckets", options.buckets, "give 2 or more for each direction");
  require(options.max_distance > side / 2, "max_distance", options.max_distance,
          "give more than half of the buckets of a direction");
  return options;
}

}  // namespace

RelativeBias::RelativeBias(const Module& parent, std::string_view name, const Dim& h,
                           const RelativeBiasOptions& options, Where at)
    : Module(parent, name, "RelativeBias", options.dtype),
      options_(checked(options, at)),
      near_(side_of(options) / 2),
      side_(side_of(options)),
      table_(*this, "", Dim("buckets", options.buckets), h, {.flat = false}, at) {}

/// Returns the i64 buckets of distances >= 0, in the same shape.
Tensor RelativeBias::bucket(const Tensor& distance) const {
  const auto near = static_cast<double>(near_), far = static_cast<double>(side_ - near_);
  const double range = std::log(static_cast<double>(options_.max_distance) / near);
  const Tensor logarithm = log(maximum(distance.to(f64), near) / near) / range;  // 0 at `near`, 1 at max_distance
  const Tensor beyond = (logarithm * far).to(i64) + near_;
  return where(distance < near_, distance, minimum(beyond, side_ - 1));
}

/// Returns the bias [.., h] of keys that are `ahead` i64 [..] positions after their query; negative if before it.
Tensor RelativeBias::values(const Tensor& ahead, DType dtype) const {
  const Tensor behind = bucket(maximum(-ahead, 0));
  return table_(options_.bidirectional ? where(ahead > 0, bucket(maximum(ahead, 0)) + side_, behind) : behind)
      .to(dtype);
}

Tensor RelativeBias::operator()(const Graph& g, const Dim& T, const Dim& S, DType dtype, Where at) const {
  // Every distance that occurs, once: from 1 - T, for the last query and the first key, to S - 1.
  const Tensor ahead = g.arange(T + S - 1, i64, at) - (g.dim_value(T, i64, at) - 1);
  const CallSite line(ahead, at, path());
  const Tensor index = g.arange(S, i64) - g.arange(T, i64).unsqueeze(1) + (g.dim_value(T) - 1);
  return gather(values(ahead, dtype), index).permute({2, 0, 1});  // [T, S, h] -> [h, T, S]
}

Tensor RelativeBias::operator()(const Tensor& positions, const Dim& S, DType dtype, Where at) const {
  const CallSite line(positions, at, path());
  const Tensor ahead = positions.graph().arange(S, i64) - positions.unsqueeze(1);  // [T, S]
  return values(ahead, dtype).permute({2, 0, 1});                                  // [T, S, h] -> [h, T, S]
}

}  // namespace lathe::nn
