#include "tests/fuzz/reference.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <optional>
#include <random>

#include "ir/ops/functional.h"
#include "passes/expand.h"
#include "passes/rebuild.h"

namespace lathe::fuzz {

using namespace ir;
using test::error_of;
using test::Outcome;
using test::outcome;

namespace {

/// What a few roundings of the coarsest dtype amount to.
double base_allowance(const Graph& graph) {
  double base = 1e-9;
  for (const Node& node : graph.nodes) {
    if (node.type.dtype == bf16) base = std::max(base, 6e-2);
    if (node.type.dtype == f16) base = std::max(base, 8e-3);
    if (node.type.dtype == f32 || node.type.dtype == c64) base = std::max(base, 2e-5);
  }
  return base;
}

/// Doubles moved by about 2^-46 of themselves, one up, the next down.
Tensors nudged(Tensors arguments) {
  for (auto& [name, tensor] : arguments)
    if (tensor.dtype() == f64)
      for (std::int64_t i = 0; i < tensor.numel(); ++i)
        tensor.set(i, tensor.get(i) * (1 + (i % 2 ? 0x1p-46 : -0x1p-46)));
  return arguments;
}

bool has_narrow(const Graph& graph) {
  for (const Node& node : graph.nodes)
    if (is_float(node.type.dtype) && node.type.dtype != f64) return true;
  return false;
}

/// Each float argument times a power of ten of its own, which its name and the seed tell. Nothing becomes infinite.
Tensors scaled(Tensors arguments, unsigned seed) {
  for (auto& [name, tensor] : arguments) {
    if (!is_float(tensor.dtype())) continue;
    std::vector<unsigned> key(name.begin(), name.end());
    key.push_back(seed);
    std::seed_seq mixed(key.begin(), key.end());
    std::mt19937 random(mixed);
    const int power = random() % 4 ? std::uniform_int_distribution<int>(least_power, largest_power)(random) : 0;
    for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.set(i, tensor.get(i) * std::pow(10.0, power));
  }
  return arguments;
}

bool is_computed(const Node& node) {
  return is_float(node.type.dtype) &&
         (node.op->as<Elementwise>() || node.op->as<Reduce>() || node.op->as<Contraction>());
}

/// The graph with every float that it computes off by a few roundings, up or down, so that terms which cancel show
/// how much is left of them.
Graph noisy(const Graph& primitives) {
  unsigned count = 0;
  return rebuild(
      primitives,
      [&](GraphBuilder& builder, const Node& node, std::span<const Value> operands) -> std::optional<Value> {
        if (!is_computed(node)) return std::nullopt;
        const double unit = node.type.dtype == f64 ? 0x1p-46 : 0x1p-22;
        const double off = ++count % 2 ? unit : -unit;
        return mul(builder.add(*node.op, operands, node.attrs), 1 + off);
      });
}

/// Whether a value is too large for its dtype on the way to the results: what becomes of that depends on the order of
/// sums, and may be hidden by a tanh.
bool overflows(const Graph& primitives, const Tensors& arguments) {
  std::vector<ValueId> computed;
  for (const ValueId id : all_values(primitives))
    if (is_computed(primitives[id])) computed.push_back(id);
  const auto rounded = interpret_values(primitives, arguments, computed);
  const auto plain = interpret_values(primitives, arguments, computed, {.round = false});
  for (std::size_t v = 0; v < computed.size(); ++v)
    for (std::int64_t i = 0; i < plain[v].numel(); ++i)
      if (!std::isfinite(rounded[v].get(i)) && std::isfinite(plain[v].get(i))) return true;
  return false;
}

/// In a common dtype, so that rounded results can be held beside unrounded ones.
HostTensor widened(const HostTensor& tensor) {
  if (is_complex(tensor.dtype())) return tensor.cast(c128);
  return is_float(tensor.dtype()) ? tensor.cast(f64) : tensor;
}

}  // namespace

Reference::Reference(const Case& from, const DimBindings& dims, bool round)
    : arguments_(test::random_arguments(from.graph, dims, from.seed, top_integer)),
      least_(from.scaled ? std::numeric_limits<float>::min() : 1.0) {
  if (from.scaled) arguments_ = scaled(std::move(arguments_), from.seed);
  const auto run = [&](const Tensors& arguments, bool rounded) {
    return outcome([&] { return interpret(from.graph, arguments, {.round = rounded}); });
  };
  expected_ = run(arguments_, round);
  if (!expected_.label.empty()) return;
  const Outcome moved = run(nudged(arguments_), round);
  const Outcome plain = round && has_narrow(from.graph) ? run(arguments_, false) : expected_;
  const double base = round ? base_allowance(from.graph) : 1e-9;
  std::optional<Tensors> off;
  if (from.scaled) {
    const Graph primitives = expand(from.graph);
    if (!overflows(primitives, arguments_)) off = interpret(noisy(primitives), arguments_, {.round = false});
  }
  for (const auto& [name, value] : expected_.results) {
    const HostTensor wide = widened(value);
    const double by_rounding = error_of(widened(plain.results.at(name)), wide, least_);
    const double by_nudge = error_of(widened(moved.results.at(name)), wide, least_);
    double& allowed = allowances_[name] = base + 16 * by_rounding + 1e3 * by_nudge;
    if (!from.scaled) continue;
    allowed = off ? allowed + 16 * error_of(widened(off->at(name)), wide, least_) : allowed;
    if (!off || !(allowed < 1)) allowed = std::numeric_limits<double>::infinity();
  }
}

std::optional<std::string> Reference::complaint(const Outcome& found) const {
  if (found.label != expected_.label)
    return fmt::format("ends with [{}] where the interpreter says [{}]", found.label, expected_.label);
  for (const auto& [name, value] : expected_.results) {
    const auto at = found.results.find(name);
    if (at == found.results.end()) return fmt::format("gives no {}", name);
    const double allowed = allowances_.at(name);
    const bool comparable = std::isfinite(allowed) || at->second.shape() != value.shape();
    const double error = error_of(at->second, value, least_);
    if (comparable && !(error <= allowed))
      return fmt::format("{} is wrong by {:.3g} (allowed {:.3g})\n  expected {}\n  found    {}", name, error, allowed,
                         value.to_string(), at->second.to_string());
  }
  return std::nullopt;
}

}  // namespace lathe::fuzz
