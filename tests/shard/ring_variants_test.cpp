#include <catch2/catch.hpp>
#include <optional>

#include "ir/tensor/verifier.h"
#include "tests/attention/variants/variant.h"
#include "tests/shard/support.h"
#include "tests/support/tensors/distance.h"
#include "tests/support/texts/error_label.h"

/// Variants of attention with their gradients in ring attention, compared with one process.
namespace lathe::shard::test {

namespace {

using lathe::test::PatternVariant;

Tensors some_arguments(const ir::Graph& graph, const DimBindings& dims) {
  Tensors arguments;
  for (const ir::ValueId id : graph.arguments()) {
    HostTensor value(graph[id].type.dtype, graph[id].type.shape.evaluate(dims));
    for (std::int64_t i = 0; i < value.numel(); ++i) {
      if (is_float(value.dtype()))
        value.set(i, static_cast<double>(i * 7 % 13) / 13 - 0.4);
      else
        value.set_int(i, i % 5 > 0);
    }
    arguments.insert({graph[id].name, std::move(value)});
  }
  return arguments;
}

/// Returns the graph of a process; nothing if its sequence cannot be sharded.
std::optional<Sharded> in_ring(const ir::Graph& graph, int ranks) {
  std::optional<Sharded> sharded;
  const std::string label = lathe::test::error_label(
      [&] { sharded = shard(graph, Mesh({{"seq", ranks}}), {Split("S", "seq")}, {.ring = RingWay::always}); });
  if (!sharded) CHECK_THAT(label, Catch::StartsWith("shard_"));
  return sharded;
}

}  // namespace

TEST_CASE("ring: attention written in many ways matches one process, or its keys stay gathered") {
  int rings = 0, gathered = 0;
  for (const PatternVariant& variant : lathe::test::variants()) {
    if (lathe::test::has_literal(variant)) continue;
    CAPTURE(variant.name());
    const ir::Graph graph = lathe::test::build(variant, f64);
    const std::optional<Sharded> sharded = in_ring(graph, rings % 2 == 0 ? 2 : 3);
    if (!sharded) continue;
    ir::verify(sharded->graph);
    rings += sharded->rings > 0;
    gathered += !sharded->gathered.empty();
    for (const GatheredAttention& each : sharded->gathered) CHECK_THAT(each.why, Catch::Contains("variant"));
    const Tensors arguments = some_arguments(graph, {{"N", 2}, {"S", 6}, {"T", 4}});
    const Tensors expected = ir::interpret(graph, arguments), found = simulate(*sharded, arguments);
    for (const auto& [name, value] : expected) CHECK(ir::test::distance(value, found.at(name)) < 1e-9);
  }
  CHECK(rings > 150);
  CHECK(gathered > 50);
}

}  // namespace lathe::shard::test
