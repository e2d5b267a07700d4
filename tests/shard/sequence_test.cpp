#include <catch2/catch.hpp>

#include "ir/tensor/text/parser.h"
#include "passes/shard/explain/explain_shard.h"
#include "tests/shard/support.h"

/// Sharded sequences: queries are sharded, keys and values gathered.
namespace lathe::shard::test {

namespace {

struct SequenceDivision {
  std::string mesh, splits;
  ShardOptions options = {};
};

ir::Graph parsed_sequence(std::string_view text) { return ir::parse_graph(text, "model.lathe"); }

Tensors numbers(const ir::Graph& graph, const DimBindings& dims) {
  Tensors arguments;
  for (const ir::ValueId id : graph.arguments()) {
    HostTensor value(graph[id].type.dtype, graph[id].type.shape.evaluate(dims));
    for (std::int64_t i = 0; i < value.numel(); ++i) value.set(i, static_cast<double>(i * 7 % 13) / 13 - 0.4);
    arguments.insert({graph[id].name, std::move(value)});
  }
  return arguments;
}

}  // namespace

TEST_CASE("shard: models with a split sequence match one process") {
  for (const ir::Graph& step : {gpt_step(1, 0.1, 0.5), llama_step(1, 0.5)})
    for (const SequenceDivision& division : std::vector<SequenceDivision>{
             {"seq=2", "T:seq"},
             {"seq=4", "T:seq"},
             {"data=2,seq=2", "B:data,T:seq"},
             {"seq=2,model=2", "T:seq,h:model,d_ff:model,vocab:model"},
             {"data=2,seq=2,model=2", "B:data,T:seq,h:model,d_ff:model,vocab:model", {.states = "data"}},
             {"data=2,seq=2", "B:data,T:seq", {.parameters = "data"}},
             {"seq=2,inner=2", "T:seq,T:inner"}}) {
      CAPTURE(step.name, division.mesh, division.splits);
      const Sharded sharded = divided(step, division.mesh, division.splits, division.options);
      CHECK(training_difference(step, sharded, step_arguments(step, 4, 8), 3) < 1e-10);
    }
}

TEST_CASE("shard: a split sequence gathers keys and values once per layer, and scatters their gradients") {
  for (const int layers : {1, 3}) {
    const Sharded gpt = divided(gpt_step(layers, 0.1), "seq=2", "T:seq");
    const std::string whole = "f64[B, 2*T@seq, 16]";
    INFO(explain(gpt));
    CHECK(count(gpt.graph, "all_gather", whole) == 2 * layers);
    CHECK(count(gpt.graph, "reduce_scatter") == 2 * layers);
    // And the gradient of the positions, which is added to the first rows of a table.
    CHECK(count(gpt.graph, "all_gather") == 2 * layers + 1);
    const Sharded llama = divided(llama_step(layers), "seq=2", "T:seq");
    INFO(explain(llama));
    CHECK(count(llama.graph, "all_gather") == 2 * layers);
    CHECK(count(llama.graph, "reduce_scatter") == 2 * layers);
    for (const Collective& each : llama.collectives)  // for 4 key/value groups, not for 8 heads
      if (each.kind != ir::CollectiveKind::all_reduce)
        CHECK(each.elements == Dim("B") * Dim("T@seq") * Dim(2 * 4 * 4));
  }
}

TEST_CASE("shard: queries are the dim that is not reduced, in any order of the dims") {
  const ir::Graph graph = parsed_sequence(R"(graph @g(input %q: f64[n, 4], input %k: f64[n, 4], input %v: f64[n, 3]) {
  %1 = contract %k, %q {spec="sd,td->st"}
  %2 = exp %1
  %3 = sum %2 {dims=[0], keepdim=true}
  %4 = div %2, %3
  %5 = contract %4, %v {spec="st,se->te"}
  output "y" %5
})");
  const Sharded sharded = divided(graph, "seq=2", "n:seq");
  INFO(explain(sharded));
  CHECK(sharded.collectives.size() == 2);
  CHECK(count(sharded.graph, "all_gather") == 2);
  CHECK(to_string(sharded.results.at("y"), sharded.mesh) == "seq: dim 0");
  CHECK(training_difference(graph, sharded, numbers(graph, {{"n", 6}}), 1) < 1e-12);
}

TEST_CASE("shard: key positions are recomputed, not gathered") {
  const ir::Graph graph = parsed_sequence(R"(graph @g(input %q: f64[n, 4], input %k: f64[n, 4]) {
  %1 = contract %q, %k {spec="td,sd->ts"}
  %2 = iota {shape=[n], dim=0, dtype=i64}
  %3 = view %2 {shape=[n, 1]}
  %4 = le %2, %3
  %5 = constant {dtype=f64, shape=[], values=[-5]}
  %6 = where %4, %1, %5
  %7 = max %6 {dims=[1]}
  output "y" %7
})");
  const Sharded sharded = divided(graph, "seq=3", "n:seq");
  CHECK(sharded.collectives.size() == 1);
  CHECK(training_difference(graph, sharded, numbers(graph, {{"n", 6}}), 1) == 0);
}

TEST_CASE("shard: an op that needs all of a dim without self-attention is an error and not a gather") {
  const ir::Graph graph = parsed_sequence(R"(graph @g(input %x: f64[n, 4]) {
  %1 = cumsum %x {dim=0}
  output "y" %1
})");
  CHECK(error_label(graph, "seq=2", "n:seq") == "shard_gather");
}

TEST_CASE("shard: a parameter with the same dim twice is not gathered") {
  const ir::Graph graph = parsed_sequence(R"(graph @g(input %x: f64[B, n=4], parameter %w: f64[n=4, n=4]) {
  %1 = contract %x, %w {spec="bn,nm->bm"}
  %2 = add %x, %1
  output "y" %2
})");
  CHECK(error_label(graph, "m=2", "n:m") == "shard_repeat");
}

TEST_CASE("shard: an op that needs a whole self-attended sequence gathers it, and reports it") {
  const ir::Graph graph = parsed_sequence(R"(graph @g(input %q: f64[n, 4], input %k: f64[n, 4]) {
  %1 = contract %q, %k {spec="td,sd->ts"}
  %2 = sum %1 {dims=[1]}
  %3 = cumsum %2 {dim=0}
  output "y" %3
})");
  const Sharded sharded = divided(graph, "seq=2", "n:seq");
  INFO(explain(sharded));
  CHECK(count(sharded.graph, "all_gather", "f64[2*n@seq]") == 1);
  CHECK(explain(sharded).find("cumsum at model.lathe:4") != std::string::npos);
  CHECK(training_difference(graph, sharded, numbers(graph, {{"n", 6}}), 1) < 1e-12);
}

TEST_CASE("shard: the graph of a split sequence does not grow with the number of processes") {
  const ir::Graph step = llama_step(1);
  CHECK(divided(step, "seq=2", "T:seq").graph.size() == divided(step, "seq=16", "T:seq").graph.size());
}

TEST_CASE("shard: top_k of a gathered sequence uses the global k") {
  const ir::Graph graph = parsed_sequence(R"(graph @g(input %x: f64[n, k, 4], input %y: f64[n, 4, k]) {
  %1 = contract %x, %y {spec="nij,njk->nik"}
  %2 = top_k %x {k=k, dim=1, largest=false}
  %3 = sum %1 {dims=[0, 1, 2]}
  output "best" %2
  output "sum" %3
})");
  const Sharded sharded = divided(graph, "a=2", "k:a");
  INFO(explain(sharded));
  CHECK(count(sharded.graph, "top_k", "i64[n, 2*k@a, 4]") == 1);
  CHECK(training_difference(graph, sharded, numbers(graph, {{"n", 3}, {"k", 6}}), 1) < 1e-12);
}

}  // namespace lathe::shard::test
