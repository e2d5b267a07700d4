#include "frontend/initial_values.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>
#include <utility>

#include "ir/ops/primitives/primitives.h"
#include "ir/support/error.h"
#include "ir/support/numbers/float_environment.h"
#include "ir/support/numbers/philox.h"

namespace lathe {

namespace {

std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

/// Two uniform random numbers in [0, 1) per element.
struct Draw {
  std::uint64_t seed, stream;
  std::pair<double, double> operator()(std::int64_t element) const {
    const auto i = static_cast<std::uint64_t>(element);
    const PhiloxWords w = philox({low(i), high(i), low(stream), high(stream)}, {low(seed), high(seed)});
    return {uniform_f64(w[0], w[1]), uniform_f64(w[2], w[3])};
  }
};

std::function<double(std::int64_t)> sampler(const Init& init, const Draw& draw) {
  switch (init.kind) {
    case Init::Kind::normal:  // Box and Muller 1958
      return [init, draw](std::int64_t i) {
        const auto [u, v] = draw(i);
        return init.a + init.b * std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * std::numbers::pi * v);
      };
    case Init::Kind::uniform:
      return [init, draw](std::int64_t i) { return init.a + (init.b - init.a) * draw(i).first; };
    case Init::Kind::values: return [init](std::int64_t i) { return init.list[i]; };
    case Init::Kind::constant:
    case Init::Kind::automatic:
    case Init::Kind::xavier_uniform:
    case Init::Kind::xavier_normal:
    case Init::Kind::kaiming_normal: break;
  }
  return [init](std::int64_t) { return init.a; };
}

}  // namespace

HostTensor initial_value(const Init& init, std::string_view name, DType dtype, const std::vector<std::int64_t>& sizes,
                         std::uint64_t seed) {
  check_init(init, name);
  const FloatEnvironment environment;
  HostTensor value(dtype, sizes);
  const Init plain = resolved_init(init, sizes);
  if (plain.kind == Init::Kind::values && std::cmp_not_equal(plain.list.size(), value.numel()))
    throw UserError(
        fmt::format("{} starts from {} values, but has {} elements", name, plain.list.size(), value.numel()),
        "init_values", "give one value for each element");
  const auto element = sampler(plain, {seed, random_stream(name)});
  for (std::int64_t i = 0; i < value.numel(); ++i) value.set(i, element(i));
  return value;
}

namespace {

HostTensor value_of(const ir::Node& node, const Init& init, std::uint64_t seed, const DimBindings& bindings) {
  for (const Dim& dim : node.type.shape)
    for (const std::string& unknown : dim.unknowns())
      if (!bindings.contains(unknown))
        throw UserError(node.loc, "initial_values",
                        fmt::format("the size {} of the {} {}: {} is not known", unknown, node.op->name.value,
                                    node.name, node.type.to_string()),
                        "dim_unbound", fmt::format("give it in `bindings`, as in {{{{\"{}\", 64}}}}", unknown));
  HostTensor value = initial_value(init, node.name, node.type.dtype, node.type.shape.evaluate(bindings), seed);
  if (node.name == "rng" && node.type.dtype == i64 && value.numel() == 2)
    value.set_int(0, static_cast<std::int64_t>(seed));
  return value;
}

/// Initial values of the states, and of the parameters too if `parameters`.
Tensors values_of(const ir::Graph& graph, std::span<const Initializer> initializers, std::uint64_t seed,
                  const DimBindings& bindings, bool parameters) {
  std::map<std::string, const Init*> known;
  for (const Initializer& entry : initializers) known[entry.name] = &entry.init;
  Tensors values;
  for (const ir::ValueId id : graph.arguments()) {
    const ir::Node& node = graph[id];
    if (node.op == &ir::ops::input || (node.op == &ir::ops::parameter && !parameters)) continue;
    const auto at = known.find(node.name);
    values.emplace(node.name, value_of(node, at == known.end() ? Init::zeros() : *at->second, seed, bindings));
  }
  return values;
}

}  // namespace

Tensors initial_values(const ir::Graph& graph, std::span<const Initializer> initializers, std::uint64_t seed,
                       const DimBindings& bindings) {
  return values_of(graph, initializers, seed, bindings, true);
}

HostTensor initial_value(const ir::Graph& graph, std::string_view name, std::span<const Initializer> initializers,
                         std::uint64_t seed, const DimBindings& bindings) {
  const auto arguments = graph.arguments();
  const auto found =
      std::ranges::find(arguments, name, [&](ir::ValueId id) { return std::string_view(graph[id].name); });
  if (found == arguments.end() || graph[*found].op == &ir::ops::input)
    throw UserError(fmt::format("@{} has no parameter or state {}", graph.name, name), "argument_unknown");
  const auto entry =
      std::ranges::find(initializers, name, [](const Initializer& each) { return std::string_view(each.name); });
  return value_of(graph[*found], entry == initializers.end() ? Init::zeros() : entry->init, seed, bindings);
}

Tensors initial_states(const ir::Graph& graph, std::uint64_t seed, const DimBindings& bindings) {
  return values_of(graph, {}, seed, bindings, false);
}

}  // namespace lathe
