#include <algorithm>
#include <catch2/catch.hpp>

#include "ir/tensor/text/parser.h"
#include "ir/tensor/text/printer.h"
#include "passes/shard/explain/explain_shard.h"
#include "passes/shard/explain/explain_splits.h"
#include "tests/shard/support.h"

/// Placements of values, and how a process's graph shows them.
namespace lathe::shard::test {

namespace {

ir::Graph parsed(std::string_view text) { return ir::parse_graph(text, "model.lathe"); }

std::string line_with(const ir::Graph& graph, std::string_view part) {
  const std::string text = ir::print(graph, {.locations = false});
  const auto at = text.find(part);
  if (at == std::string::npos) return text;
  const auto start = text.rfind('\n', at) + 1;
  return text.substr(start, text.find('\n', at) - start);
}

Tensors numbers(std::string_view name, std::vector<std::int64_t> sizes) {
  HostTensor value(f64, sizes);
  for (std::int64_t i = 0; i < value.numel(); ++i) value.set(i, static_cast<double>(i * i % 17) - 5);
  return {{std::string(name), value}};
}

}  // namespace

TEST_CASE("shard: heads named by a view split the fused projection within its blocks") {
  const ir::Graph step = gpt_step(1, 0);
  const Sharded sharded = divided(step, "data=2,model=2", "B:data,h:model");
  CHECK(to_string(sharded.arguments.at("h.0.attn.c_attn.weight"), sharded.mesh) == "model: dim 1 in 3 blocks");
  CHECK(to_string(sharded.arguments.at("h.0.attn.c_attn.bias"), sharded.mesh) == "model: dim 0 in 3 blocks");
  CHECK(to_string(sharded.arguments.at("h.0.attn.c_proj.weight"), sharded.mesh) == "model: dim 0");
  CHECK(to_string(sharded.arguments.at("optimizer.m.h.0.attn.c_attn.weight"), sharded.mesh) ==
        "model: dim 1 in 3 blocks");
  CHECK(to_string(sharded.arguments.at("h.0.attn.c_proj.bias"), sharded.mesh) == "whole");
  CHECK(to_string(sharded.arguments.at("tokens"), sharded.mesh) == "data: dim 0");
}

TEST_CASE("shard: types show which dim is split over which axis, and the text parses back") {
  const ir::Graph graph = divided(gpt_step(1, 0), "data=4,model=2", "B:data,h:model,vocab:model").graph;
  CHECK(line_with(graph, "%tokens:") == "  input %tokens: i64[B@data, T + 1],");
  CHECK(line_with(graph, "%wte:") == "  parameter %wte: f64[vocab@model=16, d_model=16],");
  CHECK(line_with(graph, "%h.0.attn.c_attn.weight:") ==
        "  parameter %h.0.attn.c_attn.weight: f64[d_model=16, _@model=24],");
}

TEST_CASE("shard: a global dim is expressed by the local dim") {
  const ir::Graph graph = parsed(R"(graph @g(input %x: f64[B, 3]) {
  %1 = iota {shape=[B + 1], dim=0, dtype=f64}
  %2 = slice %1 {dim=0, start=B, stop=B + 1}
  %3 = sum %x {dims=[0]}
  %4 = div %3, %2
  output "mean" %4
})");
  const Sharded sharded = divided(graph, "data=4", "B:data");
  CHECK(line_with(sharded.graph, "iota").find(" : f64[4*B@data + 1]") != std::string::npos);
  const Tensors arguments = numbers("x", {8, 3});
  CHECK(simulate(sharded, arguments).at("mean").same_bits(ir::interpret(graph, arguments).at("mean")));
}

TEST_CASE("shard: partial matmuls that are added are reduced once, after the addition") {
  const ir::Graph graph =
      parsed(R"(graph @g(input %x: f64[4, f=6], parameter %a: f64[f=6, 5], parameter %b: f64[f=6, 5]) {
  %1 = contract %x, %a {spec="ab,bc->ac"}
  %2 = contract %x, %b {spec="ab,bc->ac"}
  %3 = add %1, %2
  %4 = neg %3
  %5 = exp %4
  output "y" %5
})");
  CHECK(count(divided(graph, "m=3", "f:m").graph, "all_reduce") == 1);
}

TEST_CASE("shard: a partial sum is reduced at its smallest size") {
  const ir::Graph narrows = parsed(R"(graph @g(input %x: f64[4, f=6], parameter %a: f64[f=6, 5]) {
  %1 = contract %x, %a {spec="ab,bc->ac"}
  %2 = sum %1 {dims=[1]}
  %3 = exp %2
  output "y" %3
})");
  CHECK(count(divided(narrows, "m=2", "f:m").graph, "all_reduce", "f64[4]") == 1);
  const ir::Graph casts = parsed(R"(graph @g(input %x: f32[4, f=6], parameter %a: f32[f=6, 5]) {
  %1 = contract %x, %a {spec="ab,bc->ac"}
  %2 = cast %1 {dtype=bf16}
  %3 = cast %1 {dtype=f64}
  output "low" %2
  output "high" %3
})");
  const ir::Graph cast = divided(casts, "m=2", "f:m").graph;
  CHECK(count(cast, "all_reduce") == 1);
  CHECK(count(cast, "all_reduce", "f32[4, 5]") == 1);
}

TEST_CASE("shard: a scalar that is added to a partial sum is counted once") {
  const ir::Graph graph = parsed(R"(graph @g(input %x: f64[n=6], input %c: f64[]) {
  %1 = sum %x {dims=[0]}
  %2 = add %1, %c
  %3 = exp %2
  output "y" %3
})");
  const Sharded sharded = divided(graph, "m=3", "n:m");
  CHECK(count(sharded.graph, "all_reduce") == 1);
  Tensors arguments = numbers("x", {6});
  arguments.insert({"c", HostTensor::scalar(1.5, f64)});
  CHECK(simulate(sharded, arguments).at("y").get(0) == Approx(ir::interpret(graph, arguments).at("y").get(0)));
}

TEST_CASE("shard: sharded random draws match one process, bit for bit") {
  const ir::Graph graph = parsed(R"(graph @g(input %x: f32[B, h=4, 3], state %rng: i64[2]) {
  %1 = random_uniform %rng {shape=[B, h=4, 3], dtype=f32, stream=5}
  %2 = add %1, %x
  output "y" %2
})");
  Tensors arguments{{"x", HostTensor(f32, {6, 4, 3})}, {"rng", HostTensor::from_ints({2}, {11, 3})}};
  const HostTensor expected = ir::interpret(graph, arguments).at("y");
  for (const std::string mesh : {"a=1,b=2", "a=2,b=1", "a=3,b=4", "a=6,b=2"})
    CHECK(simulate(divided(graph, mesh, "B:a,h:b"), arguments).at("y").same_bits(expected));
}

TEST_CASE("shard: the report lists every collective with bytes, line and reason") {
  const Sharded sharded = divided(gpt_step(1, 0), "data=2,model=2", "B:data,h:model");
  const std::string report = explain(sharded);
  CHECK(static_cast<int>(sharded.collectives.size()) == count(sharded.graph, "all_reduce"));
  for (const Collective& each : sharded.collectives) {
    CHECK(report.find(each.reason) != std::string::npos);
    CHECK(report.find(each.bytes().to_string() + " bytes") != std::string::npos);
  }
  CHECK(report.find("a process holds") != std::string::npos);
}

TEST_CASE("shard: the report gives the name, place and op that split an argument") {
  const ir::Graph graph = parsed(R"(graph @g(input %x: f64[B, d_model=4], parameter %h.0.w: f64[d_model=4, 6],
                                           parameter %h.1.w: f64[d_model=4, 6], parameter %whole: f64[d_model=4],
                                           state %h.0.w.m: f64[d_model=4, 6]) {
  %1 = mul %x, %whole
  %2 = contract %1, %h.0.w {spec="ab,bc->ac"}
  %3 = view %2 {shape=[B, h=2, 3]}
  %4 = contract %1, %h.1.w {spec="ab,bc->ac"}
  %5 = view %4 {shape=[B, h=2, 3]}
  %6 = add %3, %5
  %7 = add %h.0.w.m, %h.0.w
  output "y" %6
  update %h.0.w.m <- %7
})");
  const Sharded sharded = divided(graph, "data=2,model=2", "B:data,h:model");
  CHECK(explain_splits(graph, sharded, parse_splits("B:data,h:model")) == R"(%x: f64[B, d_model=4]
  dim 0 over data: its name is B at model.lathe:1
%h.*.w (2): f64[d_model=4, 6]
  dim 1 over model: h of view at model.lathe:6, through contract at model.lathe:5
%h.0.w.m: f64[d_model=4, 6]
  dim 1 over model: h of view at model.lathe:6, through add at model.lathe:10
)");
}

TEST_CASE("shard: the report has one line per kind of argument, for any number of layers") {
  const auto report = [](int layers) {
    const ir::Graph step = gpt_step(layers, 0);
    const std::string splits = "B:data," + by_model;
    return explain_splits(step, divided(step, "data=2,model=2", splits, {.states = "data"}), parse_splits(splits));
  };
  const auto lines = [](const std::string& text) { return std::ranges::count(text, '\n'); };
  const std::string of_three = report(3);
  INFO(of_three);
  CHECK(lines(of_three) == lines(report(2)));
  for (const char* part : {"%h.*.attn.c_attn.weight (3): ", " in 3 blocks: h of ", "its name is vocab",
                           "between steps each process keeps its part"})
    CHECK(of_three.find(part) != std::string::npos);
}

}  // namespace lathe::shard::test
