#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <set>

#include "frontend/dsl.h"
#include "frontend/models/gpt.h"
#include "frontend/train/step.h"
#include "ir/tensor/op/op.h"
#include "ir/tensor/text/parser.h"
#include "ir/tensor/text/printer.h"
#include "passes/shard/explain/explain_shard.h"
#include "passes/transforms/canonicalize.h"
#include "passes/transforms/constant_fold.h"
#include "passes/transforms/cse.h"
#include "passes/transforms/dce.h"
#include "tests/shard/support.h"

/// Sharded optimizer states and parameters: ZeRO (Rajbhandari et al. 2020) stages 1 and 3.
namespace lathe::shard::test {

namespace {

const ShardOptions states{.states = "data"}, parameters{.parameters = "data"};

struct ZeroDivision {
  std::string mesh, splits;
  ShardOptions options;
};
std::vector<ZeroDivision> zero_divisions() {
  return {{"data=2", "B:data", states},
          {"data=4", "B:data", states},
          {"data=2,model=2", "B:data," + by_model, states},
          {"data=2", "B:data", parameters},
          {"data=4", "B:data", parameters},
          {"data=2,model=2", "B:data," + by_model, parameters},
          {"data=2,fsdp=2,model=2", "B:data,B:fsdp," + by_model, {.states = "data", .parameters = "fsdp"}},
          {"data=2,fsdp=2,model=2",
           "B:data,B:fsdp," + by_model,
           {.parameters = "fsdp", .second_gather = SecondGather::never}}};
}

/// GPT-2 with 124M parameters; pass a padded vocabulary to make it divisible.
ir::Graph gpt2_step(std::int64_t vocab = 50257) {
  Graph g{"gpt2"};
  models::GptConfig config;
  config.vocab = Dim("vocab", vocab);
  config.context = Dim("context", 1024);
  config.d_model = Dim("d_model", 768);
  config.h = Dim("h", 12);
  config.layers = 12;
  const models::Gpt model(g, config);
  const Tensor tokens = g.input("tokens", i64, {Dim("B"), Dim("T") + 1});
  return training_step(g, model.loss(tokens), AdamW{});
}

std::int64_t bytes_of(const ir::Node& node) {
  return *node.type.shape.numel().value() * static_cast<std::int64_t>(size_in_bytes(node.type.dtype));
}

/// Returns the bytes of the graph's arguments of this op that `chosen` selects, without scalars.
template <class F>
std::int64_t argument_bytes(const ir::Graph& graph, std::string_view op, F chosen) {
  std::int64_t bytes = 0;
  for (const ir::ValueId id : graph.arguments()) {
    const ir::Node& node = graph[id];
    if (node.op->name.value == op && node.type.rank() > 0 && chosen(node)) bytes += bytes_of(node);
  }
  return bytes;
}
std::int64_t argument_bytes(const ir::Graph& graph, std::string_view op) {
  return argument_bytes(graph, op, [](const ir::Node&) { return true; });
}

struct Sent {
  std::int64_t tensors = 0, scalars = 0;
};
Sent sent(const Sharded& sharded) {
  Sent sent;
  for (const Collective& each : sharded.collectives)
    (each.elements.is(1) ? sent.scalars : sent.tensors) += bytes_sent(each);
  return sent;
}

/// Returns the bytes that the nodes of a graph send, computed from their types only.
std::int64_t sent_by_nodes(const ir::Graph& graph) {
  std::int64_t bytes = 0;
  for (const ir::Node& node : graph.nodes) {
    const std::string_view op = node.op->name.value;
    if (op != "all_reduce" && op != "all_gather" && op != "reduce_scatter") continue;
    const auto n = node.attrs.get<std::int64_t>("ranks");
    const std::int64_t own = bytes_of(node);
    if (node.type.shape.rank() == 0) continue;
    bytes += op == "all_reduce" ? 2 * (n - 1) * own / n : op == "all_gather" ? (n - 1) * own / n : (n - 1) * own;
  }
  return bytes;
}

}  // namespace

TEST_CASE("shard: GPT-2 with sharded states and parameters matches one process") {
  const ir::Graph step = gpt_step(1, 0.1, 0.5);
  for (const ZeroDivision& division : zero_divisions()) {
    CAPTURE(division.mesh, division.options.states, division.options.parameters);
    const Sharded sharded = divided(step, division.mesh, division.splits, division.options);
    CHECK(sharded.kept_whole.empty());
    CHECK(training_difference(step, sharded, step_arguments(step, 4, 4), 4) < 1e-10);
  }
}

TEST_CASE("shard: Llama with sharded states and parameters matches one process") {
  const ir::Graph step = llama_step(1, 0.5);
  for (const ZeroDivision& division : zero_divisions()) {
    CAPTURE(division.mesh, division.options.states, division.options.parameters);
    const Sharded sharded = divided(step, division.mesh, division.splits, division.options);
    CHECK(training_difference(step, sharded, step_arguments(step, 4, 4), 4) < 1e-10);
  }
}

TEST_CASE("shard: twenty steps on three axes match one process") {
  const std::string splits = "B:data,B:fsdp," + by_model;
  const ShardOptions options{.states = "data", .parameters = "fsdp"};
  const ir::Graph gpt = gpt_step(1, 0.1);
  CHECK(training_difference(gpt, divided(gpt, "data=2,fsdp=2,model=2", splits, options), step_arguments(gpt, 4, 3),
                            20) < 1e-10);
  const ir::Graph llama = llama_step(1);
  CHECK(training_difference(llama, divided(llama, "data=2,fsdp=2,model=2", splits, options),
                            step_arguments(llama, 4, 3), 20) < 1e-10);
}

TEST_CASE("shard: twenty steps in f32 match the loss of one process") {
  for (const ir::Graph& step : {gpt_step(1, 0.1, 0, f32), llama_step(1, 0, f32)})
    for (const ShardOptions& options : {ShardOptions{}, states, parameters})
      CHECK(training_difference(step, divided(step, "data=2,model=2", "B:data," + by_model, options),
                                step_arguments(step, 4, 3), 20, Compared::outputs) < 2e-5);
}

TEST_CASE("shard: sharded states send as many bytes as data parallelism, and hold 4P + 8P/n") {
  const ir::Graph step = gpt2_step();
  const std::int64_t p4 = argument_bytes(step, "parameter");
  const Sharded plain = divided(step, "data=4", "B:data"), zero = divided(step, "data=4", "B:data", states);
  CHECK(sent(plain).tensors == 746'638'848);
  CHECK(sent(zero).tensors == 746'638'848);
  CHECK(sent(plain).scalars == 3 * 4);
  CHECK(sent(zero).scalars == 2 * 3 * 4);
  CHECK(sent_by_nodes(plain.graph) == 746'638'848);
  CHECK(sent_by_nodes(zero.graph) == 746'638'848);
  CHECK(argument_bytes(zero.graph, "parameter") == p4);
  CHECK(argument_bytes(zero.graph, "state") == 2 * p4 / 4);
  CHECK(count(zero.graph, "all_reduce") == 2);  // the loss, and the norm of sharded gradients
}

TEST_CASE("shard: sharded parameters are sent three times, and hold 12P/n") {
  const ir::Graph step = gpt2_step();
  const Sharded zero = divided(step, "data=4", "B:data", parameters);
  const std::int64_t p4 = argument_bytes(step, "parameter");
  // Parameters that are only added, such as biases and positions, are not needed in the backward pass.
  const std::int64_t added = argument_bytes(step, "parameter", [](const ir::Node& node) {
    return node.name.ends_with(".bias") || node.name.starts_with("wpe");
  });
  // The logits' matmul reads wte right before the gradient does, so both use one gather.
  const std::int64_t tied =
      argument_bytes(step, "parameter", [](const ir::Node& node) { return node.name == "wte"; });
  CHECK(sent(zero).tensors == 3 * (3 * p4 - added - tied) / 4);
  CHECK(sent_by_nodes(zero.graph) == sent(zero).tensors);
  CHECK(argument_bytes(zero.graph, "parameter") == p4 / 4);
  CHECK(argument_bytes(zero.graph, "state") == 2 * p4 / 4);
  const Sharded kept =
      divided(step, "data=4", "B:data", {.parameters = "data", .second_gather = SecondGather::never});
  CHECK(sent(kept).tensors == 3 * 2 * p4 / 4);
}

TEST_CASE("shard: a gathered value is kept if its gradient follows directly, otherwise gathered again") {
  const auto gathers = [](const std::string& between) {
    const ir::Graph step =
        ir::parse_graph(R"(graph @g(input %x: f64[B, 4], parameter %w: f64[4, 4], parameter %u: f64[4, 4]) {
  %1 = contract %x, %w {spec="ab,bc->ac"}
)" + between + R"(
  %4 = contract %3, %w {spec="ac,bc->ab"} loc(gradient "model":1)
  %5 = contract %x, %4 {spec="ab,ac->bc"} loc(gradient "model":1)
  %6 = sub %w, %5
  update %w <- %6
})",
                        "model.lathe");
    return count(divided(step, "data=2", "B:data", parameters).graph, "all_gather");
  };
  CHECK(gathers("  %2 = exp %1\n  %3 = neg %2") == 1);
  CHECK(gathers("  %2 = contract %1, %u {spec=\"ab,bc->ac\"}\n  %3 = neg %2") == 3);
}

TEST_CASE("shard: tensor parallelism of GPT-2 sends four values of B T d per layer and those of the vocabulary") {
  const Sharded sharded = divided(gpt2_step(50304), "model=4", by_model);
  const DimBindings sizes{{"B", 8}, {"T", 512}};
  std::int64_t bytes = 0;
  for (const Collective& each : sharded.collectives)
    if (!each.elements.value()) bytes += bytes_sent(each, sizes);
  const std::int64_t rows = 8 * 512;
  CHECK(bytes == 2 * 3 * ((4 * 12 + 2) * rows * 768 + 3 * rows) * 4 / 4);
}

TEST_CASE("shard: the norm of shards counts each shard once") {
  const ir::Graph step = gpt_step(1, 0, 0.5);
  const Sharded sharded = divided(step, "data=4", "B:data", states);
  int scalars = 0;
  for (const Collective& each : sharded.collectives) scalars += each.kind == ir::CollectiveKind::all_reduce;
  CHECK(scalars == 2);  // the loss, and the sum of squares combined once over all parameters
}

TEST_CASE("shard: types and placements of shards name the axis") {
  const ir::Graph step = gpt_step(1, 0);
  const Sharded sharded = divided(step, "data=2,model=2", "B:data," + by_model, states);
  const auto lies = [&](const std::string& name) { return to_string(sharded.arguments.at(name), sharded.mesh); };
  CHECK(lies("wte") == "model: dim 0");
  CHECK(lies("optimizer.m.wte") == "data: dim 0 in 2 blocks; model: dim 0");
  CHECK(lies("optimizer.v.h.0.attn.c_attn.weight") == "data: dim 0; model: dim 1 in 3 blocks");
  CHECK(lies("optimizer.step") == "whole");
  const std::string text = ir::print(sharded.graph);
  CHECK(text.find("state %optimizer.m.wte: f64[vocab@model@data=8, d_model=16]") != std::string::npos);
}

TEST_CASE("shard: a parameter with no dim that divides stays whole and the report says so") {
  const ir::Graph step = ir::parse_graph(
      R"(graph @g(input %x: f64[B, 5], parameter %w: f64[5, 7], state %m: f64[5, 7], parameter %u: f64[6], state %n: f64[6]) {
  %1 = contract %x, %w {spec="ab,bc->ac"}
  %2 = contract %x, %1 {spec="ab,ac->bc"}
  %3 = add %m, %2
  %4 = sub %w, %3
  %5 = sum %2 {dims=[0, 1]}
  %6 = mul %u, %5
  %7 = add %n, %6
  %8 = sub %u, %7
  update %m <- %3
  update %w <- %4
  update %n <- %7
  update %u <- %8
})",
      "model.lathe");
  const Sharded sharded = divided(step, "data=2", "B:data", states);
  CHECK(sharded.kept_whole == std::vector<std::string>{"w"});
  CHECK(to_string(sharded.arguments.at("m"), sharded.mesh) == "whole");
  CHECK(to_string(sharded.arguments.at("n"), sharded.mesh) == "data: dim 0");
  CHECK(explain(sharded).find("w is whole on every process") != std::string::npos);
}

TEST_CASE("shard: a maximum that updates shards is reduced, and each process uses its shard") {
  const ir::Graph step = ir::parse_graph(R"(graph @g(input %x: f64[B, 4], parameter %w: f64[4]) {
  %1 = max %x {dims=[0]}
  %2 = add %w, %1
  output "sum" %2
  update %w <- %1
})",
                                         "model.lathe");
  Tensors arguments{{"x", HostTensor(f64, {6, 4})}, {"w", HostTensor(f64, {4})}};
  for (std::int64_t i = 0; i < 24; ++i) arguments.at("x").set(i, static_cast<double>(i * 7 % 13));
  const Sharded sharded = divided(step, "data=2", "B:data", parameters);
  CHECK(count(sharded.graph, "all_reduce") == 1);
  CHECK(count(sharded.graph, "reduce_scatter") == 0);
  CHECK(training_difference(step, sharded, arguments, 2) == 0);
}

TEST_CASE("shard: accumulated gradients, momentum and skipped steps are sharded too") {
  const Optimizer sgd = SGD{.lr = 1e-2, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true};
  for (const ir::Graph& step : {gpt_step(AdamW{.lr = 1e-2}, {.clip_norm = 0.5, .accumulate = 2}), gpt_step(sgd, {})})
    for (const ShardOptions& options : {states, parameters}) {
      const Sharded sharded = divided(step, "data=4", "B:data", options);
      CHECK(argument_bytes(sharded.graph, "state") == argument_bytes(step, "state") / 4);
      CHECK(training_difference(step, sharded, step_arguments(step, 4, 3), 4) < 1e-10);
    }
}

TEST_CASE("shard: in mixed precision parameters are gathered in the 16-bit dtype") {
  const ir::Graph step = gpt_step(AdamW{.lr = 1e-3}, {.precision = bf16});
  const Sharded sharded = divided(step, "data=4", "B:data", parameters);
  for (const Collective& each : sharded.collectives)
    if (each.kind == ir::CollectiveKind::all_gather && each.value.find("[d_model=16, ") != std::string::npos)
      CHECK(each.element_bytes == 2);
  CHECK(training_difference(step, sharded, step_arguments(step, 4, 3), 2, Compared::outputs) < 1.6e-2);
}

TEST_CASE("shard: passes do not merge repeated gathers") {
  const ir::Graph step = gpt_step(1, 0.1);
  Sharded sharded = divided(step, "data=2", "B:data", parameters);
  const int gathers = count(sharded.graph, "all_gather");
  CHECK(gathers > count(divided(step, "data=2", "B:data",
                                {.states = {}, .parameters = "data", .second_gather = SecondGather::never})
                            .graph,
                        "all_gather"));
  sharded.graph = ir::dce(ir::cse(ir::canonicalize(ir::constant_fold(ir::canonicalize(sharded.graph)))));
  CHECK(count(sharded.graph, "all_gather") == gathers);
  CHECK(training_difference(step, sharded, step_arguments(step, 4, 4), 2) < 1e-10);
}

TEST_CASE("shard: the graph with shards does not grow with the number of processes") {
  const ir::Graph step = gpt_step(1, 0);
  for (const ShardOptions& options : {states, parameters})
    CHECK(divided(step, "data=2", "B:data", options).graph.size() ==
          divided(step, "data=16", "B:data", options).graph.size());
}

TEST_CASE("shard: the report totals the bytes that a process sends and holds") {
  const ir::Graph step = gpt_step(1, 0);
  const Sharded sharded = divided(step, "data=4", "B:data", parameters);
  const std::string report = explain(sharded);
  std::int64_t scattered = 0, held = argument_bytes(sharded.graph, "parameter");
  for (const Collective& each : sharded.collectives)
    scattered += each.kind == ir::CollectiveKind::reduce_scatter ? bytes_sent(each) : 0;
  CHECK(scattered == 3 * held);
  CHECK(report.find(fmt::format("reduce_scatter, a process sends {} bytes", scattered)) != std::string::npos);
  CHECK(report.find(fmt::format("a process holds {} bytes of parameters", held)) != std::string::npos);
  CHECK(report.find("bytes of gathered values at a time") != std::string::npos);
}

TEST_CASE("shard: states of any optimizer can be sharded") {
  const ir::Graph step =
      ir::parse_graph(R"(graph @g(input %x: f64[B, 6], parameter %w: f64[6, 4], state %slow: f64[6, 4]) {
  %1 = contract %x, %w {spec="ab,bc->ac"}
  %2 = contract %x, %1 {spec="ab,ac->bc"}
  %3 = max %2 {dims=[0], keepdim=true}
  %4 = exp %3
  %5 = add %slow, %2
  %6 = div %5, %4
  %7 = mul %6, %6
  %8 = sum %7 {dims=[0, 1]}
  %9 = sqrt %8
  %10 = div %6, %9
  %11 = sub %w, %10
  output "norm" %9
  output "gradient" %2
  update %slow <- %5
  update %w <- %11
})",
                      "model.lathe");
  Tensors arguments;
  for (const auto& [name, sizes] :
       std::map<std::string, std::vector<std::int64_t>>{{"x", {4, 6}}, {"w", {6, 4}}, {"slow", {6, 4}}}) {
    HostTensor value(f64, sizes);
    for (std::int64_t i = 0; i < value.numel(); ++i) value.set(i, static_cast<double>(i * 7 % 11) / 11 - 0.3);
    arguments.insert({name, value});
  }
  for (const ShardOptions& options : {states, parameters}) {
    const Sharded sharded = divided(step, "data=2", "B:data", options);
    CHECK(count(sharded.graph, "reduce_scatter") == 1);
    CHECK(training_difference(step, sharded, arguments, 3) < 1e-12);
  }
}

TEST_CASE("shard: a parameter shard is computed at its place in the gathered buffer") {
  const Program program = program_of(shard(gpt2_step(), Mesh::parse("data=2"), parse_splits("B:data"), states).graph);
  std::set<std::string> moved;
  int in_place = 0;
  for (const lathe::Collective& collective : program.collectives) {
    if (collective.kind != lathe::Collective::Kind::all_gather) continue;
    for (const lathe::Collective::Part& part : collective.parts) {
      if (part.from == part.to)
        ++in_place;
      else
        moved.insert(part.elements.to_string());
    }
  }
  CHECK(in_place == 147);
  // The table of an odd vocabulary is sharded along its other dim, so its shards are not contiguous.
  CHECK(moved == std::set<std::string>{std::to_string(50257 * 768 / 2)});
}

}  // namespace lathe::shard::test
