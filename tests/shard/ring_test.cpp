#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "ir/tensor/text/parser.h"
#include "ir/tensor/text/printer.h"
#include "passes/compile/compilation.h"
#include "passes/compile/gather_choice.h"
#include "passes/compile/ring_choice.h"
#include "passes/machines/cpu_machine.h"
#include "passes/shard/explain/explain_shard.h"
#include "passes/shard/predict/rank_scaling.h"
#include "passes/shard/ring/ring_attention.h"
#include "passes/transforms/sizes/known_sizes.h"
#include "tests/shard/support.h"
#include "tests/support/tensors/distance.h"

/// Ring attention: sequences sharded over processes, whose keys and values are sent around a ring.
namespace lathe::shard::test {

namespace {

struct RingDivision {
  std::string mesh, splits;
  ShardOptions options = {};
};

ShardOptions with_ring(ShardOptions options = {}) {
  options.ring = RingWay::always;
  return options;
}

}  // namespace

TEST_CASE("ring: models train as on one process") {
  for (const ir::Graph& step : {gpt_step(1, 0.1, 0.5), llama_step(1, 0.5)})
    for (const RingDivision& division :
         std::vector<RingDivision>{{"seq=2", "T:seq"},
                                   {"seq=4", "T:seq"},
                                   {"data=2,seq=2", "B:data,T:seq"},
                                   {"seq=2,model=2", "T:seq,h:model,d_ff:model,vocab:model"},
                                   {"data=2,seq=2", "B:data,T:seq", {.parameters = "data"}}}) {
      CAPTURE(step.name, division.mesh, division.splits);
      const Sharded sharded = divided(step, division.mesh, division.splits, with_ring(division.options));
      INFO(explain(sharded));
      CHECK(sharded.rings == 1);
      CHECK(sharded.gathered.empty());
      CHECK(training_difference(step, sharded, step_arguments(step, 4, 8), 3) < 1e-10);
    }
}

TEST_CASE("ring: sizes may be known, and named, before sharding") {
  const ir::Graph step = ir::with_sizes(gpt_step(1, 0.1, 0.5), {{"B", 4}, {"T", 8}});
  const Sharded sharded = divided(step, "seq=4", "T:seq", with_ring());
  CHECK(sharded.rings == 1);
  CHECK(training_difference(step, sharded, step_arguments(step, 4, 8), 3) < 1e-10);
}

TEST_CASE("ring: keys, values and their gradients are neither gathered nor scattered") {
  for (const int layers : {1, 3}) {
    const Sharded sharded = divided(gpt_step(layers, 0.1), "seq=4", "T:seq", with_ring());
    INFO(explain(sharded));
    CHECK(sharded.rings == layers);
    // For keys and for values: three steps forward, three backward, and three for gradients.
    CHECK(count(sharded.graph, "send_recv") == 2 * 9 * layers);
    CHECK(count(sharded.graph, "reduce_scatter") == 0);
    CHECK(count(sharded.graph, "all_gather") == 1);  // the gradient of the positions
    std::int64_t sends = 0;
    for (const Collective& each : sharded.collectives) sends += each.kind == ir::CollectiveKind::send_recv;
    CHECK(sends == 2 * 9 * layers);
    CHECK_THAT(
        explain(sharded),
        Catch::Contains("keys and values are passed around a ring") &&
            Catch::Contains("passed around again, for their gradients") &&
            Catch::Contains("the gradients of keys and values are passed along with them, back to their owners"));
  }
  const Sharded gathered = divided(gpt_step(1, 0.1), "seq=4", "T:seq", {.ring = RingWay::never});
  CHECK(count(gathered.graph, "send_recv") == 0);
  CHECK(ir::print(divided(gpt_step(1, 0.1), "seq=4", "T:seq").graph) == ir::print(gathered.graph));
}

TEST_CASE("ring: two blocks of keys and of values are live at a time, and one received block of each gradient") {
  const Program program = program_of(divided(gpt_step(3, 0.1, 0, f32), "seq=6", "T:seq", with_ring()).graph);
  const auto last_use = [&](int buffer) {
    int last = 0;
    for (int l = 0; l < static_cast<int>(program.launches.size()); ++l)
      if (std::ranges::count(program.launches[static_cast<std::size_t>(l)].buffers, buffer) > 0) last = l;
    return last;
  };
  for (const bool of_gradients : {false, true}) {
    int most = 0;
    for (int l = 0; l < static_cast<int>(program.launches.size()); ++l) {
      int alive = 0;
      for (const lathe::Collective& collective : program.collectives)
        for (const lathe::Collective::Part& part : collective.parts)
          alive += collective.kind == ir::CollectiveKind::send_recv && part.loc.gradient() == of_gradients &&
                   collective.start <= l && l <= last_use(part.to);
      most = std::max(most, alive);
    }
    CHECK(most == (of_gradients ? 2 : 4));
  }
}

TEST_CASE("ring: sends of keys and values overlap the kernels of a block") {
  const Program program = program_of(divided(gpt_step(1, 0.1, 0, f32), "seq=4", "T:seq", with_ring()).graph);
  const auto is_product = [](std::optional<RegionKind> kind) {
    return kind == RegionKind::attention || kind == RegionKind::product;
  };
  int sends = 0;
  for (const lathe::Collective& collective : program.collectives) {
    if (collective.kind != ir::CollectiveKind::send_recv || collective.parts[0].loc.gradient()) continue;
    ++sends;
    bool hidden = false;
    for (int l = collective.start; l < collective.done; ++l)
      hidden = hidden || is_product(program.launches[static_cast<std::size_t>(l)].info.kind);
    CAPTURE(collective.parts[0].op.to_string(), collective.start, collective.done);
    CHECK(hidden);
  }
  CHECK(sends == 12);
}

TEST_CASE("ring: each block is a separate attention op, forward and backward") {
  for (const ir::Graph& step : {gpt_step(1, 0.1, 0, f32), llama_step(1, 0, f32)}) {
    const Machine machine = cpu_machine(unnamed_cpu());
    const LowerOptions fused{.attention = AttentionFusion::required};
    const ir::Graph ring = divided(step, "seq=4", "T:seq", with_ring()).graph;
    const Lowered lowered = compile_graph(ring, machine, {.lower = fused});
    int attentions = 0;
    for (const Launch& launch : lowered.program.launches) attentions += launch.info.kind == RegionKind::attention;
    CHECK(attentions == 8);
  }
}

TEST_CASE("ring: bf16 and f16 blocks are sent, their gradients in f32") {
  for (const DType precision : {bf16, f16}) {
    const ir::Graph step = gpt_step(AdamW{.lr = 1e-2}, {.precision = precision});
    const Sharded sharded = divided(step, "seq=2", "T:seq", with_ring());
    INFO(explain(sharded));
    CHECK(sharded.rings == 1);
    for (const Collective& each : sharded.collectives)
      if (each.kind == ir::CollectiveKind::send_recv) CHECK(each.element_bytes == (each.loc.gradient() ? 4 : 2));
    CHECK(training_difference(step, sharded, step_arguments(step, 4, 8), 1, Compared::outputs) < 2e-2);
  }
}

namespace {

/// Scores of which some rows see nothing in some blocks, and one row sees nothing at all. `floors`: as with
/// zero_masked.
ir::Graph with_blind_rows(bool floors) {
  return ir::parse_graph(
      std::string(R"(graph @g(input %q: f64[n, 4], input %k: f64[n, 4], input %v: f64[n, 3]) {
  %1 = contract %q, %k {spec="td,sd->ts"}
  %2 = iota {shape=[n, n], dim=0, dtype=i64}
  %3 = iota {shape=[n, n], dim=1, dtype=i64}
  %4 = lt %3, %2
  %5 = constant {dtype=f64, shape=[], values=[-inf]}
  %6 = where %4, %1, %5
  %7 = max %6 {dims=[1], keepdim=true}
)") +
          (floors ? "  %8 = constant {dtype=f64, shape=[], values=[-1.7976931348623157e308]}\n  %9 = maximum %7, %8\n"
                  : "  %8 = constant {dtype=f64, shape=[], values=[0.5]}\n") +
          "  %10 = sub %6, " + (floors ? "%9" : "%7") + R"(
  %11 = exp %10
  %12 = sum %11 {dims=[1], keepdim=true}
)" + (floors ? "  %13 = constant {dtype=f64, shape=[], values=[0.5]}\n  %14 = maximum %12, %13\n" : "") +
          "  %15 = div %11, " + (floors ? "%14" : "%12") + R"(
  %16 = contract %15, %v {spec="ts,se->te"}
  output "y" %16
})",
      "model.lathe");
}

Tensors numbers_of(const ir::Graph& graph) {
  Tensors arguments;
  for (const ir::ValueId id : graph.arguments()) {
    HostTensor value(f64, graph[id].type.shape.evaluate({{"n", 6}}));
    for (std::int64_t i = 0; i < value.numel(); ++i) value.set(i, static_cast<double>(i * 7 % 13) / 13 - 0.4);
    arguments.insert({graph[id].name, std::move(value)});
  }
  return arguments;
}

}  // namespace

TEST_CASE("ring: rows that see no key of a block ignore it, and fully masked rows match one process") {
  for (const bool floors : {false, true}) {
    const ir::Graph graph = with_blind_rows(floors);
    const Sharded sharded = divided(graph, "seq=3", "n:seq", with_ring());
    CHECK(sharded.rings == 1);
    const Tensors arguments = numbers_of(graph);
    const HostTensor expected = ir::interpret(graph, arguments).at("y"), found = simulate(sharded, arguments).at("y");
    CHECK(std::isnan(expected.get(0)) == !floors);
    CHECK(ir::test::distance(expected, found) < 1e-14);
  }
}

TEST_CASE("ring: unsupported attention stays gathered, with a reason") {
  const ir::Graph step = gpt_step(1, 0.1);
  const Sharded two = divided(step, "seq=2,inner=2", "T:seq,T:inner", with_ring());
  CHECK(two.rings == 0);
  CHECK(two.gathered.size() == 2);  // keys and values
  CHECK_THAT(explain(two), Catch::Contains("stay gathered: all_gather at ") &&
                               Catch::Contains("gathers keys that several axes split"));
  CHECK(training_difference(step, two, step_arguments(step, 4, 8), 1) < 1e-10);
  const ir::Graph best = ir::parse_graph(R"(graph @g(input %q: f64[n, 4], input %k: f64[n, 4]) {
  %1 = contract %q, %k {spec="td,sd->ts"}
  %2 = max %1 {dims=[1]}
  output "y" %2
})",
                                         "model.lathe");
  const Sharded whole = divided(best, "seq=3", "n:seq", with_ring());
  CHECK(whole.rings == 0);
  CHECK_THAT(explain(whole), Catch::Contains("max at model.lathe:3 is of no softmax along the keys"));
  CHECK(training_difference(best, whole, numbers_of(best), 1) == 0);
}

TEST_CASE("ring choice: gathers if faster, a ring if only a ring fits the budget") {
  const ir::Graph gathered = divided(gpt_step(2, 0, 0, f32), "seq=4", "T:seq").graph;
  const Machine machine = cpu_machine(unnamed_cpu());
  DimBindings dims{{"B", 1}, {"T@seq", 64}, {"mesh_index@seq", 0}};
  StepRates rates;
  rates.flops = 1e9;
  rates.bandwidth = 1e8;
  rates.latency = 0;
  const auto choose = [&](const LowerOptions& lowering = {}) {
    return choose_ring(gathered, machine, lowering, rates, dims);
  };
  rates.latency = 1;  // with six times as many messages
  RingChoice choice = choose();
  CHECK(choice.way == RingWay::never);
  CHECK_THAT(choice.why, Catch::StartsWith("keys and values are gathered: a step is predicted to take "));
  const auto taken = [&](const ir::Graph& graph) {
    return bytes_without_budget(graph, machine, {.memory = MemoryBudget{.bytes = 0, .dims = dims}});
  };
  const std::int64_t all = taken(gathered), less = taken(ring_attention(gathered).graph);
  REQUIRE(less < all);
  for (const std::int64_t budget : {all, all - 1, less}) {
    choice = choose({.memory = MemoryBudget{.bytes = budget, .dims = dims}});
    CAPTURE(budget, choice.why);
    CHECK(choice.way == (budget < all ? RingWay::always : RingWay::never));
    if (budget < all)
      CHECK_THAT(choice.why, Catch::Contains(std::to_string(less)) && Catch::Contains(std::to_string(all)));
  }
  dims.erase("B");
  CHECK(choose().way == RingWay::never);
  CHECK_THAT(choose().why, Catch::Contains("without sizes"));
  CHECK(choose_ring(divided(gpt_step(1, 0), "data=2", "B:data").graph, machine, {}, rates, {}).why.empty());
}

}  // namespace lathe::shard::test
