#include <catch2/catch.hpp>
#include <map>

#include "passes/compile_pipeline.h"
#include "passes/cpu/lower_cpu.h"
#include "passes/memory/memory_plan.h"
#include "passes/shard/held_bytes.h"
#include "passes/shard/scaling.h"
#include "tests/ranks/support.h"

/// What programs hold of gathered parameters and of gradients on their way, against what `lathe shard --explain`
/// says.
namespace lathe::test {

namespace {

Program program_of(const ir::Graph& graph) {
  const Machine machine = cpu_machine({});
  return lower_prepared(ir::run_pipeline(graph, compile_pipeline(machine)).graph, machine).program;
}

/// The most bytes at a time of the buffers that `chosen` takes of exchanges.
template <class Chosen>
std::int64_t most_at_a_time(const Program& program, const MemoryPlan& plan, Chosen chosen) {
  std::vector<bool> counts(program.buffers.size());
  for (const Exchange& exchange : program.exchanges)
    for (const Exchange::Part& part : exchange.parts)
      if (const int buffer = chosen(exchange, part); buffer >= 0) counts[static_cast<std::size_t>(buffer)] = true;
  std::map<int, std::int64_t> change;
  for (const MemoryPlan::Block& block : plan.blocks) {
    if (!counts[static_cast<std::size_t>(block.buffer)]) continue;
    change[block.first] += block.bytes;
    change[block.last + 1] -= block.bytes;
  }
  std::int64_t now = 0, most = 0;
  for (const auto& [launch, more] : change) most = std::max(most, now += more);
  return most;
}

struct Held {
  std::int64_t gathered, scattered, arena, predicted;
};

Held held(const ir::Graph& step) {
  const shard::Sharded sharded =
      shard::shard(step, shard::Mesh::parse("data=4"), {{"B", "data"}}, {.parameters = "data"});
  const Program program = program_of(sharded.graph);
  DimBindings dims = shard::local_dims(sharded, {{"B", 8}, {"T", 6}});
  dims.emplace("mesh_index@data", 1);
  const MemoryPlan plan = plan_memory(program, dims);
  const auto gathered = [](const Exchange& exchange, const Exchange::Part& part) {
    return exchange.kind == Exchange::Kind::all_gather ? part.to : -1;
  };
  const auto scattered = [](const Exchange& exchange, const Exchange::Part& part) {
    return exchange.kind == Exchange::Kind::reduce_scatter ? part.from : -1;
  };
  return {most_at_a_time(program, plan, gathered), most_at_a_time(program, plan, scattered), plan.arena_bytes,
          shard::held_bytes(sharded.graph).gathered};
}

}  // namespace

TEST_CASE("ranks: a program holds the gathered bytes that are predicted, however many layers there are") {
  for (const auto& make : {+[](int layers) { return small_step(f32, 0.5, layers); },
                           +[](int layers) { return small_llama_step(f32, layers); }}) {
    const Held two = held(make(2)), six = held(make(6));
    CAPTURE(two.gathered, two.predicted, two.scattered, two.arena, six.gathered, six.scattered, six.arena);
    CHECK(two.gathered == two.predicted);
    CHECK(six.gathered == two.gathered);
    CHECK(six.predicted == two.predicted);
    CHECK(six.scattered == two.scattered);
  }
}

}  // namespace lathe::test
