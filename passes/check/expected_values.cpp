#include "passes/check/expected_values.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "ir/support/error.h"
#include "passes/check/rounding_noise.h"

namespace lathe::ir {

namespace {

/// What a float dtype keeps of a number; integers are exact.
struct Precision {
  double base;   ///< what a few roundings amount to
  double least;  ///< the smallest normal number: below, digits are lost
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
    case DType::boolean: return {0, 0};
  }
  throw InternalError("a dtype out of range");
}

}  // namespace

ExpectedValues::ExpectedValues(const Graph& graph, Tensors arguments, std::vector<ValueId> values,
                               const ExpectOptions& options)
    : graph_(graph),
      arguments_(std::move(arguments)),
      values_(std::move(values)),
      options_(options),
      expected_(interpret_values(graph_, arguments_, values_, options_.interpret)) {}

/// One more sample: how far the values lie from these when they are computed so.
void ExpectedValues::add_spread(const Graph& graph, const std::vector<ValueId>& values,
                                const std::vector<HostTensor>& from, const InterpretOptions& options) {
  std::vector<double>& moved = spreads_.emplace_back(values.size(), std::numeric_limits<double>::infinity());
  try {
    const auto others = interpret_values(graph, arguments_, values, options);
    for (std::size_t i = 0; i < values.size(); ++i) moved[i] = difference(others[i], from[i]).largest;
  } catch (const UserError&) {  // roundings decide an index, which is out of range without them
  }
}

/// Makes the rewritten graph, and its values without roundings.
void ExpectedValues::rewrite() {
  Graph alone = graph_;
  alone.outputs.clear();
  alone.updates.clear();
  for (const ValueId id : values_) alone.outputs.push_back({fmt::format("value {}", alone.outputs.size()), id});
  rewritten_ = options_.rewrite(alone);
  for (const Output& output : rewritten_->outputs) rewritten_values_.push_back(output.value);
  InterpretOptions exact = options_.interpret;
  exact.round = false;
  rewritten_expected_ = interpret_values(*rewritten_, arguments_, rewritten_values_, exact);
}

/// How far another way of computing moves the values: without roundings, which is sample 0, or with noise, in the
/// graph or, every other sample, in the rewritten one.
const std::vector<double>& ExpectedValues::spreads(int sample) {
  while (std::cmp_less_equal(spreads_.size(), sample)) {
    InterpretOptions options = options_.interpret;
    const std::uint64_t seed = spreads_.size();
    if (seed == 0) {
      options.round = false;
      add_spread(graph_, values_, expected_, options);
      continue;
    }
    options.computed = RoundingNoise(seed, options.round);
    if (options_.rewrite && seed % 2 == 0) {
      if (!rewritten_) rewrite();
      add_spread(*rewritten_, rewritten_values_, rewritten_expected_, options);
    } else {
      add_spread(graph_, values_, expected_, options);
    }
  }
  return spreads_[static_cast<std::size_t>(sample)];
}

double ExpectedValues::base(std::size_t i) const {
  const Precision precision = precision_of(expected_[i].dtype());
  return options_.tolerance.value_or(precision.base) * std::max(largest_magnitude(expected_[i]), precision.least);
}

Nearness ExpectedValues::compare(std::size_t i, const HostTensor& found) {
  // More samples make it certain that what is not near is wrong.
  const int samples = options_.rewrite ? 13 : 7;
  constexpr double multiple = 8;
  Nearness result{difference(found, expected_[i]), base(i), largest_magnitude(expected_[i])};
  const double least = result.allowed;
  for (int sample = 0; sample < samples; ++sample) {
    if (result.near() || options_.tolerance || found.shape() != expected_[i].shape()) break;
    result.allowed = std::max(result.allowed, least + multiple * spreads(sample)[i]);
  }
  return result;
}

}  // namespace lathe::ir
