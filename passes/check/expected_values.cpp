#include "passes/check/expected_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/support/error.h"

namespace lathe::ir {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// What a float dtype keeps of a number; integers are exact.
struct Precision {
  double base;  ///< what a few roundings amount to
  double
      last_bit;  ///< at most this much of a number; of f64 a little more, so that it is seen beside others' roundings
  double least;  ///< the smallest normal number: below, digits are lost
};

Precision precision_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::c128: return {1e-9, 0x1p-44, 0x1p-1022};
    case DType::f32:
    case DType::c64: return {2e-5, 0x1p-23, 0x1p-126};
    case DType::bf16: return {6e-2, 0x1p-7, 0x1p-126};
    case DType::f16: return {8e-3, 0x1p-10, 0x1p-14};
    case DType::i64:
    case DType::i32:
    case DType::boolean: return {0, 0, 0};
  }
  throw InternalError("a dtype out of range");
}

/// Of two dtypes the one that keeps less; f64 where neither is coarser than that.
DType coarser(DType a, DType b) { return precision_of(b).base > precision_of(a).base ? b : a; }

/// For each node, the coarsest float dtype among what it is computed from, itself included.
std::vector<DType> coarsest_ancestors(const Graph& graph) {
  std::vector<DType> coarsest;
  for (const Node& node : graph.nodes) {
    DType dtype = coarser(f64, node.type.dtype);
    for (const ValueId operand : node.operands)
      dtype = coarser(dtype, coarsest[static_cast<std::size_t>(operand.index)]);
    coarsest.push_back(dtype);
  }
  return coarsest;
}

/// x moved up by so much of its magnitude; a greater number stays the greater one. Jumps of rounding ops and casts
/// are at quarters and halves: no number is moved onto or over one.
double moved(double x, double by) {
  const double y = x + by * std::fabs(x);
  return std::floor(4 * x) == std::floor(4 * y) && std::ceil(4 * x) == std::ceil(4 * y) ? y : x;
}

Tensors moved(Tensors arguments, double by) {
  for (auto& [name, tensor] : arguments)
    for (std::int64_t i = 0; i < tensor.numel() && is_float(tensor.dtype()); ++i)
      tensor.set(i, moved(tensor.get(i), by));
  return arguments;
}

}  // namespace

ExpectedValues::ExpectedValues(const Graph& graph, Tensors arguments, std::vector<ValueId> values,
                               const ExpectOptions& options)
    : graph_(graph),
      arguments_(std::move(arguments)),
      values_(std::move(values)),
      options_(options),
      expected_(interpret_values(graph_, arguments_, values_, options_.interpret)) {
  const std::vector<DType> coarsest = coarsest_ancestors(graph_);
  for (const ValueId id : values_)
    coarsest_.push_back(options_.interpret.round ? coarsest[static_cast<std::size_t>(id.index)] : f64);
}

std::vector<double> ExpectedValues::spreads(const Sample& sample) const {
  InterpretOptions options = options_.interpret;
  if (sample.shift == 0) options.round = false;
  const double by = sample.shift * precision_of(sample.precision).last_bit;
  try {
    const auto others = interpret_values(graph_, moved(arguments_, by), values_, options);
    std::vector<double> result;
    for (std::size_t i = 0; i < values_.size(); ++i) result.push_back(difference(others[i], expected_[i]).largest);
    return result;
  } catch (const UserError&) {  // what is moved can get out of an index's range
    return std::vector<double>(values_.size(), infinite);
  }
}

double ExpectedValues::spread(std::size_t i, const Sample& sample) {
  if (sample.shift == 0 && coarsest_[i] == f64) return 0;
  const Sample key{sample.shift == 0 ? f64 : sample.precision, sample.shift};
  auto at = spreads_.find(key);
  if (at == spreads_.end()) at = spreads_.emplace(key, spreads(key)).first;
  return at->second[i];
}

double ExpectedValues::base(std::size_t i) const {
  const Precision precision = precision_of(expected_[i].dtype());
  return options_.tolerance.value_or(precision.base) * std::max(largest_magnitude(expected_[i]), precision.least);
}

Nearness ExpectedValues::compare(std::size_t i, const HostTensor& found) {
  // The first is cheap where all is well; more samples make it certain that what is not near is wrong.
  constexpr int shifts[] = {0, 1, -1, 2, -2, 3, -3};
  constexpr double multiple = 16;
  Nearness result{difference(found, expected_[i]), base(i), largest_magnitude(expected_[i])};
  const double least = result.allowed;
  for (const int shift : shifts) {
    if (result.near() || options_.tolerance || found.shape() != expected_[i].shape()) break;
    result.allowed = std::max(result.allowed, least + multiple * spread(i, {coarsest_[i], shift}));
  }
  return result;
}

}  // namespace lathe::ir
