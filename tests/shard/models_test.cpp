#include <catch2/catch.hpp>

#include "ir/tensor/op/op.h"
#include "passes/transforms/canonicalize.h"
#include "passes/transforms/constant_fold.h"
#include "passes/transforms/cse.h"
#include "passes/transforms/dce.h"
#include "tests/shard/support.h"

/// Training steps of whole models, sharded in the common ways.
namespace lathe::shard::test {

namespace {

struct Division {
  std::string mesh, splits;
};
std::vector<Division> divisions() {
  return {{"data=2", "B:data"},
          {"data=4", "B:data"},
          {"model=2", by_model},
          {"model=4", by_model},
          {"data=2,model=2", "B:data," + by_model}};
}

}  // namespace

TEST_CASE("shard: GPT-2 on every mesh matches one process, dropout and clipping included") {
  const ir::Graph step = gpt_step(2, 0.1, 0.5);
  for (const Division& division : divisions()) {
    CAPTURE(division.mesh);
    const Sharded sharded = divided(step, division.mesh, division.splits);
    CHECK(training_difference(step, sharded, step_arguments(step, 4, 5), 5) < 1e-10);
  }
}

TEST_CASE("shard: Llama on every mesh matches one process, grouped heads included") {
  const ir::Graph step = llama_step(2);
  for (const Division& division : divisions()) {
    CAPTURE(division.mesh);
    const Sharded sharded = divided(step, division.mesh, division.splits);
    CHECK(training_difference(step, sharded, step_arguments(step, 4, 5), 5) < 1e-10);
  }
}

TEST_CASE("shard: twenty steps of GPT-2 on a mesh of two axes match one process") {
  const ir::Graph step = gpt_step(1, 0.1);
  const Sharded sharded = divided(step, "data=2,model=2", "B:data," + by_model);
  CHECK(training_difference(step, sharded, step_arguments(step, 4, 4), 20) < 1e-10);
}

TEST_CASE("shard: tensor parallelism communicates what Megatron-LM does and nothing else") {
  const std::string hidden = "f64[B, T, d_model=16]", rows = "f64[B, T, 1]";
  for (const int layers : {1, 3}) {
    const ir::Graph gpt = divided(gpt_step(layers, 0.1), "model=2", by_model).graph;
    CHECK(count(gpt, "all_reduce", hidden) == 4 * layers + 2);
    CHECK(count(gpt, "all_reduce", rows) == 3);
    CHECK(count(gpt, "all_gather") == 0);
    CHECK(count(gpt, "all_to_all") == 0);
    const ir::Graph llama = divided(llama_step(layers), "model=2", by_model).graph;
    CHECK(count(llama, "all_reduce", hidden) == 4 * layers + 2);
    CHECK(count(llama, "all_reduce", rows) == 3);
    CHECK(count(llama, "all_gather") == 0);
  }
}

TEST_CASE("shard: tensor parallelism of the layers only leaves the vocabulary unsharded") {
  const ir::Graph graph = divided(gpt_step(2, 0), "model=4", "h:model,d_ff:model").graph;
  CHECK(count(graph, "all_reduce", "f64[B, T, d_model=16]") == 4 * 2);
  CHECK(count(graph, "all_reduce", "f64[B, T, 1]") == 0);
}

TEST_CASE("shard: data parallelism reduces each gradient once, and scalars") {
  const ir::Graph step = gpt_step(2, 0);
  const Sharded sharded = divided(step, "data=4", "B:data");
  int parameters = 0, scalars = 0;
  for (const ir::ValueId id : step.arguments()) parameters += step[id].op->name.value == "parameter";
  for (const Collective& each : sharded.collectives) {
    CHECK(each.kind == ir::CollectiveKind::all_reduce);
    CHECK(each.bytes().value().has_value());  // no activation: those have the dim B
    scalars += each.bytes().is(8);
  }
  CHECK(static_cast<int>(sharded.collectives.size()) == parameters + scalars);
  CHECK(scalars == 1);  // the loss
}

TEST_CASE("shard: the graph does not grow with the number of processes") {
  const ir::Graph step = llama_step(1);
  const int two = divided(step, "data=2,model=2", "B:data," + by_model).graph.size();
  CHECK(divided(step, "data=64,model=4", "B:data," + by_model).graph.size() == two);
}

TEST_CASE("shard: passes preserve the semantics of a sharded graph") {
  const ir::Graph step = gpt_step(1, 0.1);
  Sharded sharded = divided(step, "data=2,model=2", "B:data," + by_model);
  const int collectives = count(sharded.graph, "all_reduce");
  sharded.graph = ir::dce(ir::cse(ir::canonicalize(ir::constant_fold(ir::canonicalize(sharded.graph)))));
  CHECK(count(sharded.graph, "all_reduce") == collectives);
  CHECK(training_difference(step, sharded, step_arguments(step, 4, 4), 2) < 1e-10);
}

TEST_CASE("shard: an axis of one process changes only names") {
  const ir::Graph step = gpt_step(1, 0.1);
  const Sharded sharded = divided(step, "model=1", by_model);
  CHECK(sharded.collectives.empty());
  CHECK(training_difference(step, sharded, step_arguments(step, 2, 3), 1) == 0);
}

}  // namespace lathe::shard::test
