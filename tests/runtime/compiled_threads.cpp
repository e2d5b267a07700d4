#include <catch2/catch.hpp>

#include "frontend/initialize.h"
#include "frontend/models/gpt.h"
#include "frontend/models/llama.h"
#include "frontend/training.h"
#include "runtime/executable.h"

using namespace lathe;

namespace {

/// Three training steps, the second with another batch and sequence size, from one start.
ir::Tensors train(const ir::Graph& step, const std::vector<Initializer>& initializers, int threads) {
  CompileOptions options;
  options.threads = threads;
  Executable exe = compile(step, options);
  exe.set_states(initial_values(step, initializers, 7));
  ir::Tensors results;
  for (const auto& [batch, length] : {std::pair{3, 20}, {5, 9}, {3, 20}}) {
    HostTensor tokens(i64, {batch, length + 1});
    for (std::int64_t i = 0; i < tokens.numel(); ++i) tokens.set_int(i, i * 5 % 31);
    results = exe.run({{"tokens", tokens}});
  }
  for (const auto& [name, value] : exe.states()) results.insert_or_assign(name, value);
  return results;
}

void check_same_bits(Graph& g) {
  const auto initializers = g.initializers();
  const ir::Graph step = training_step(g.finish(), "loss", AdamW{.lr = 1e-3}, {.clip_norm = 1.0});
  const ir::Tensors once = train(step, initializers, 1);
  for (const int threads : {1, 2, 3, 7, 16})
    for (const auto& [name, value] : train(step, initializers, threads)) {
      INFO(name << " with " << threads << " threads");
      CHECK(value.same_bits(once.at(name)));
    }
}

}  // namespace

TEST_CASE("a GPT with dropout trains to the same bits on any number of threads") {
  Graph g("gpt");
  const models::Gpt model(g, {.vocab = Dim("vocab", 31),
                              .context = Dim("context", 32),
                              .d_model = Dim("d_model", 48),
                              .h = Dim("h", 3),
                              .layers = 2,
                              .dropout = 0.1});
  g.output("loss", model.loss(g.input("tokens", i64, {Dim("B"), Dim("T") + 1})));
  check_same_bits(g);
}

TEST_CASE("a Llama trains to the same bits on any number of threads") {
  Graph g("llama");
  const models::Llama model(g, {.vocab = Dim("vocab", 31),
                                .d_model = Dim("d_model", 48),
                                .d_ff = Dim("d_ff", 80),
                                .h = Dim("h", 4),
                                .kv_heads = Dim("kv_heads", 2),
                                .head_dim = Dim("head_dim", 12),
                                .layers = 2});
  g.output("loss", model.loss(g.input("tokens", i64, {Dim("B"), Dim("T") + 1})));
  check_same_bits(g);
}
