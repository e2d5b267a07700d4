#include "tests/shard/support.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "frontend/dsl.h"
#include "frontend/models/gpt.h"
#include "frontend/models/llama.h"
#include "frontend/step.h"
#include "ir/support/error.h"
#include "ir/tensor/text/parser.h"
#include "ir/tensor/text/printer.h"
#include "ir/tensor/verifier.h"
#include "tests/support/distance.h"

namespace lathe::shard::test {

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
  try {
    (void)shard(graph, Mesh::parse(mesh), parse_splits(splits));
  } catch (const UserError& error) {
    return error.label();
  }
  return "";
}

namespace {

models::GptConfig small_gpt(int layers, double dropout, DType dtype) {
  models::GptConfig config;
  config.vocab = Dim("vocab", 32);
  config.context = Dim("context", 8);
  config.d_model = Dim("d_model", 16);
  config.h = Dim("h", 4);
  config.layers = layers;
  config.dropout = dropout;
  config.dtype = dtype;
  return config;
}

ir::Graph train_gpt(const models::GptConfig& config, const Optimizer& optimizer, const TrainingOptions& options) {
  Graph g{"gpt"};
  const models::Gpt model(g, config);
  const Tensor tokens = g.input("tokens", i64, {Dim("B"), Dim("T") + 1});
  return training_step(g, model.loss(tokens), optimizer, options);
}

}  // namespace

ir::Graph gpt_step(int layers, double dropout, double clip_norm, DType dtype) {
  return train_gpt(small_gpt(layers, dropout, dtype), AdamW{.lr = 1e-2}, {.clip_norm = clip_norm});
}

ir::Graph gpt_step(const Optimizer& optimizer, const TrainingOptions& options) {
  return train_gpt(small_gpt(1, 0, options.precision == f32 ? f64 : f32), optimizer, options);
}

ir::Graph llama_step(int layers, double clip_norm, DType dtype) {
  Graph g{"llama"};
  models::LlamaConfig config;
  config.vocab = Dim("vocab", 32);
  config.d_model = Dim("d_model", 16);
  config.d_ff = Dim("d_ff", 24);
  config.h = Dim("h", 8);
  config.kv_heads = Dim("kv_heads", 4);
  config.head_dim = Dim("head_dim", 4);
  config.layers = layers;
  config.dtype = dtype;
  const models::Llama model(g, config);
  const Tensor tokens = g.input("tokens", i64, {Dim("B"), Dim("T") + 1});
  return training_step(g, model.loss(tokens), AdamW{.lr = 1e-2}, {.clip_norm = clip_norm});
}

Tensors step_arguments(const ir::Graph& step, std::int64_t batch, std::int64_t length) {
  std::mt19937 generator(3);
  std::uniform_real_distribution<double> real(-0.5, 0.5);
  Tensors arguments;
  for (const ir::ValueId id : step.arguments()) {
    const ir::Node& node = step[id];
    HostTensor value(node.type.dtype, node.type.shape.evaluate({{"B", batch}, {"T", length}}));
    for (std::int64_t i = 0; i < value.numel(); ++i) {
      if (node.name == "tokens") value.set_int(i, static_cast<std::int64_t>(generator() % 32));
      if (node.name == "rng") value.set_int(i, i == 0 ? 7 : 0);
      if (is_float(node.type.dtype) && node.name.find("optimizer.") != 0) value.set(i, real(generator));
    }
    arguments.insert({node.name, std::move(value)});
  }
  return arguments;
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

int count(const ir::Graph& graph, std::string_view op, std::string_view type) {
  return static_cast<int>(std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const ir::Node& node) {
    return node.op->name.value == op && (type.empty() || node.type.to_string() == type);
  }));
}

}  // namespace lathe::shard::test
