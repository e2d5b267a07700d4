#include "passes/check/expected_values.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ir/support/error.h"
#include "passes/check/rounding_noise.h"

namespace lathe::ir {

namespace {

/// The precision of a float dtype; integers are exact.
struct Precision {
  double base;   ///< error of a few roundings
  double least;  ///< the smallest normal number; digits are lost below it
};

Precision precision_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::c128: return {1e-9, 0x1p-1022};
    case DType::f32:
    case DType::c64: return {2e-5, 0x1p-126};
    case DType::bf16: return {6e-2, 0x1p-126};
    case DType::f16: return {8e-3, 0x1p-14};
    case DType::i64:
    case DType::i32:
    case DType::i8:
    case DType::u8:
    case DType::boolean: return {0, 0};
  }
  throw InternalError("a dtype out of range");
}

}  // namespace

ExpectedValues::ExpectedValues(const Graph& graph, Tensors arguments, std::vector<ValueId> values,
                               const ExpectOptions& options)
    : arguments_(std::move(arguments)), options_(options), given_{graph, std::move(values), {}} {
  given_.expected = interpret_values(graph, arguments_, given_.values, options_.interpret);
}

/// Returns the values after the passes, as outputs of their own graph, computed without rounding.
ExpectedValues::Way ExpectedValues::rewritten() const {
  Graph alone = given_.graph;
  alone.outputs.clear();
  alone.updates.clear();
  for (const ValueId id : given_.values) alone.outputs.push_back({fmt::format("value {}", alone.outputs.size()), id});
  Way way{.graph = options_.rewrite(alone), .values = {}, .expected = {}};
  for (const Output& output : way.graph.outputs) way.values.push_back(output.value);
  InterpretOptions exact = options_.interpret;
  exact.round = false;
  way.expected = interpret_values(way.graph, arguments_, way.values, exact);
  return way;
}

/// Returns how far the values move if they are computed with these options.
std::vector<ExpectedValues::Spread> ExpectedValues::spread(const Way& way, const InterpretOptions& options) const {
  std::vector<Spread> moved(way.values.size());
  try {
    const auto others = interpret_values(way.graph, arguments_, way.values, options);
    for (std::size_t v = 0; v < moved.size(); ++v) {
      const HostTensor& expected = way.expected[v];
      for (std::int64_t i = 0; i < expected.numel(); ++i) {
        const double by = element_difference(others[v], expected, i);
        if (std::isfinite(by)) {
          moved[v].largest = std::max(moved[v].largest, by);
        } else {
          moved[v].undecided.resize(static_cast<std::size_t>(expected.numel()));
          moved[v].undecided[i] = true;
        }
      }
    }
  } catch (const UserError&) {  // rounding decides an index, which is out of range without it
    for (std::size_t v = 0; v < moved.size(); ++v)
      moved[v] = {0, std::vector<bool>(static_cast<std::size_t>(way.expected[v].numel()), true)};
  }
  return moved;
}

/// Returns how far another computation moves the values: without rounding, which is sample 0, or with noise. Every
/// other sample with noise uses the rewritten graph; samples 2, 3, 6, 7 ... move equal elements alike.
const std::vector<ExpectedValues::Spread>& ExpectedValues::spreads(int sample) {
  while (std::cmp_less_equal(spreads_.size(), sample)) {
    InterpretOptions options = options_.interpret;
    const std::uint64_t seed = spreads_.size();
    if (seed == 0)
      options.round = false;
    else
      options.computed =
          RoundingNoise(seed, options.round,
                        seed / 2 % 2 == 1 ? RoundingNoise::Equals::move_alike : RoundingNoise::Equals::move_apart);
    const bool in_rewritten = options_.rewrite && seed > 0 && seed % 2 == 0;
    if (in_rewritten && !rewritten_) rewritten_ = rewritten();
    spreads_.push_back(spread(in_rewritten ? *rewritten_ : given_, options));
  }
  return spreads_[sample];
}

double ExpectedValues::base(std::size_t i) const {
  const Precision precision = precision_of(given_.expected[i].dtype());
  return options_.tolerance.value_or(precision.base) *
         std::max(largest_magnitude(given_.expected[i]), precision.least);
}

Nearness ExpectedValues::compare(std::size_t i, const HostTensor& found) {
  // More samples make it certain that a value that is not near is wrong.
  const int samples = options_.rewrite ? 13 : 7;
  constexpr double multiple = 8;
  const HostTensor& expected = given_.expected[i];
  Nearness result{.difference = difference(found, expected), .largest = largest_magnitude(expected)};
  result.allowed = base(i);
  const double least = result.allowed;
  std::vector<bool> undecided;
  for (int sample = 0; sample < samples; ++sample) {
    if (result.near() || options_.tolerance || found.shape() != expected.shape()) break;
    const Spread& spread = spreads(sample)[i];
    const double allowed = least + multiple * spread.largest;
    result.allowed = std::max(result.allowed, std::min(allowed, std::numeric_limits<double>::max()));
    if (spread.undecided.empty()) continue;
    undecided.resize(spread.undecided.size());
    for (std::size_t e = 0; e < undecided.size(); ++e) undecided[e] = undecided[e] || spread.undecided[e];
    result.difference = difference(found, expected, undecided);
  }
  result.undecided = std::ranges::count(undecided, true);
  result.none_decided = result.undecided > 0 && result.undecided == found.numel();
  return result;
}

}  // namespace lathe::ir
