#include "tests/fuzz/reference.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>

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

/// In a common dtype, so that rounded results can be held beside unrounded ones.
HostTensor widened(const HostTensor& tensor) {
  if (is_complex(tensor.dtype())) return tensor.cast(c128);
  return is_float(tensor.dtype()) ? tensor.cast(f64) : tensor;
}

}  // namespace

Reference::Reference(const Case& from, const DimBindings& dims, bool round)
    : arguments_(test::random_arguments(from.graph, dims, from.seed, top_integer)) {
  const auto run = [&](const Tensors& arguments, bool rounded) {
    return outcome([&] { return interpret(from.graph, arguments, {.round = rounded}); });
  };
  expected_ = run(arguments_, round);
  if (!expected_.label.empty()) return;
  const Outcome moved = run(nudged(arguments_), round);
  const Outcome plain = round && has_narrow(from.graph) ? run(arguments_, false) : expected_;
  const double base = round ? base_allowance(from.graph) : 1e-9;
  for (const auto& [name, value] : expected_.results) {
    const HostTensor wide = widened(value);
    const double by_rounding = error_of(widened(plain.results.at(name)), wide);
    const double by_nudge = error_of(widened(moved.results.at(name)), wide);
    allowances_[name] = base + 16 * by_rounding + 1e3 * by_nudge;
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
    const double error = error_of(at->second, value);
    if (comparable && !(error <= allowed))
      return fmt::format("{} is wrong by {:.3g} (allowed {:.3g})\n  expected {}\n  found    {}", name, error, allowed,
                         value.to_string(), at->second.to_string());
  }
  return std::nullopt;
}

}  // namespace lathe::fuzz
