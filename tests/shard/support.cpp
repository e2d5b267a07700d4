#include "tests/shard/support.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "ir/support/error.h"
#include "ir/tensor/text/parser.h"
#include "ir/tensor/text/printer.h"
#include "ir/tensor/verifier.h"
#include "passes/compile/compilation.h"
#include "passes/machines/cpu_machine.h"
#include "tests/support/tensors/distance.h"
#include "tests/support/texts/error_label.h"

namespace lathe::shard::test {

using lathe::test::divisible_gpt;

Sharded divided(const ir::Graph& graph, std::string_view mesh, std::string_view splits, const ShardOptions& options) {
  Sharded sharded = shard(graph, Mesh::parse(mesh), parse_splits(splits), options);
  ir::verify(sharded.graph);
  const std::string text = ir::print(sharded.graph);
  CHECK(ir::print(ir::parse_graph(text, "sharded.lathe")) == text);
  return sharded;
}

std::string error_text(const ir::Graph& graph, std::string_view mesh, std::string_view splits) {
  try {
    (void)shard(graph, Mesh::parse(mesh), parse_splits(splits));
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

std::string error_label(const ir::Graph& graph, std::string_view mesh, std::string_view splits) {
  return lathe::test::error_label([&] { (void)shard(graph, Mesh::parse(mesh), parse_splits(splits)); });
}

ir::Graph gpt_step(int layers, double dropout, double clip_norm, DType dtype) {
  return lathe::test::gpt_step(divisible_gpt(layers, dropout, dtype), AdamW{.lr = 1e-2}, {.clip_norm = clip_norm});
}

ir::Graph gpt_step(const Optimizer& optimizer, const TrainingOptions& options) {
  return lathe::test::gpt_step(divisible_gpt(1, 0, options.precision == f32 ? f64 : f32), optimizer, options);
}

ir::Graph llama_step(int layers, double clip_norm, DType dtype) {
  return lathe::test::llama_step(lathe::test::divisible_llama(layers, dtype), AdamW{.lr = 1e-2},
                                 {.clip_norm = clip_norm});
}

double training_difference(const ir::Graph& step, const Sharded& sharded, Tensors arguments, int steps,
                           Compared compared) {
  Tensors one = arguments, many = std::move(arguments);
  double worst = 0;
  for (int i = 0; i < steps; ++i) {
    const Tensors expected = ir::interpret(step, one), found = simulate(sharded, many);
    REQUIRE(expected.size() == found.size());
    for (const auto& [name, value] : expected) {
      if (compared == Compared::all || !one.count(name))
        worst = std::max(worst, ir::test::distance(value, found.at(name)));
      if (one.count(name)) one.at(name) = value;
      if (many.count(name)) many.at(name) = found.at(name);
    }
  }
  return worst;
}

Program program_of(const ir::Graph& sharded) {
  const Machine machine = cpu_machine(unnamed_cpu());
  return compile_graph(sharded, machine).program;
}

int count(const ir::Graph& graph, std::string_view op, std::string_view type) {
  return static_cast<int>(std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const ir::Node& node) {
    return node.op->name.value == op && (type.empty() || node.type.to_string() == type);
  }));
}

ir::Graph two_products() {
  return ir::parse_graph(R"(graph @g(input %x: f32[8, 16], input %v: f32[16, 4], input %w: f32[16, 4]) {
  %1 = contract %x, %v {spec="ab,bc->ac"}
  %2 = all_reduce %1 {axis="m", ranks=4, combine="sum"}
  %3 = contract %x, %w {spec="ab,bc->ac"}
  %4 = all_reduce %3 {axis="m", ranks=4, combine="sum"}
  %5 = add %2, %4
  output "y" %5
})",
                         "model.lathe");
}

StepRates slow_network() {
  StepRates rates;
  rates.bandwidth = 192;
  rates.latency = 0.5;
  return rates;
}

}  // namespace lathe::shard::test
