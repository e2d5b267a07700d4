#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "frontend/initial_values.h"
#include "frontend/train/step.h"
#include "models/pretrained/token_loss.h"
#include "models/text/dataset/token_batches.h"
#include "passes/shard/plan/default_splits.h"
#include "passes/shard/simulate.h"
#include "tests/pretrained/cases/token_case.h"

/// Pretrained models sharded over processes, like in `lathe finetune`.
using namespace lathe;

namespace {

TokenBatches batches(bool pack, bool lengths) {
  std::vector<Example> made;
  for (std::int64_t i = 0; i < 12; ++i) {
    Example example;
    for (std::int64_t k = 0; k < 3 + i * 5 % 7; ++k) {
      example.ids.push_back(static_cast<TokenId>((i * 31 + k * k * 7 + 3) % 90));
      example.learned.push_back(k > i % 2);
    }
    made.push_back(example);
  }
  return {made, {.context = 10, .batch = 4, .pack = pack, .lengths = lengths}};
}

std::string text_of(const std::vector<shard::Split>& splits) {
  std::string text;
  for (const shard::Split& split : splits)
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", split.dim, split.axis);
  return text;
}

/// Dims of the tiny model of each family that are split over an axis `model` of two processes by default.
const std::map<std::string, std::string> by_default{
    {"llama", "h:model,d_ff:model,vocab:model"},
    {"mistral", "h:model,d_ff:model,vocab:model"},
    {"qwen2", "h:model,d_ff:model,vocab:model"},
    {"qwen3", "h:model,d_ff:model"},
    {"mixtral", "h:model,d_ff:model,vocab:model"},
    {"phi3", "d_ff:model,vocab:model"},
    {"phi3_longrope", "h:model,d_ff:model,vocab:model"},
    {"phi3_longrope_window", "d_ff:model,vocab:model"},
    {"olmo2", "h:model,d_ff:model,vocab:model"},
    {"gemma2", "h:model,d_ff:model,vocab:model"},
    {"gemma3", "h:model,d_ff:model,vocab:model"},
    {"gpt_neox", "h:model,d_ff:model,vocab:model"},
    {"gpt2", "d_ff:model,vocab:model"},
};

void check_same(const Tensors& one, const Tensors& many) {
  REQUIRE(one.size() == many.size());
  for (const auto& [name, value] : one) {
    INFO(name);
    CHECK(test::error_of(many.at(name), value) <= 1e-9);
  }
}

}  // namespace

TEST_CASE("pretrained: models of every family train on several processes as on one, sharded by default") {
  const shard::Mesh mesh = shard::Mesh::parse("data=2,model=2");
  std::set<std::string> seen;
  for (const test::HfCase& which : test::hf_cases("causal-lm")) {
    const auto expected = by_default.find(which.name);
    if (expected == by_default.end()) continue;
    INFO(which.name);
    seen.insert(which.name);
    const pretrained::Pretrained model = test::load_in(which, f64);
    const bool pack = seen.size() % 2 == 0;
    const ir::Graph forward = token_loss(*model.model, "train", Dim("B", 4), Dim("T"), pack, f64).finish();
    const shard::DefaultSplits splits = shard::default_splits(forward, mesh);
    CHECK(text_of(splits.splits) == "B:data," + expected->second);
    CHECK(splits.splits.size() + splits.left_out.size() == 4);
    const ir::Graph step = training_step(forward, "loss", SGD{.lr = 0.5}, {.clip_norm = 0.5});
    Tensors arguments = batches(pack, model.model->depends_on_length()).training(0);
    for (const auto& [name, value] : model.weights.values()) arguments.emplace(name, value);
    for (const auto& [name, value] : initial_states(step, 1)) arguments.emplace(name, value);
    const Tensors one = ir::interpret(step, arguments);
    check_same(one, shard::simulate(shard::shard(step, mesh, splits.splits, {.parameters = "data"}), arguments));
    if (which.name == "llama" || which.name == "gpt2")  // for both, labels are communicated instead of logits
      check_same(one, shard::simulate(shard::shard(step, shard::Mesh::parse("seq=2"), shard::parse_splits("T:seq")),
                                      arguments));
  }
  CHECK(seen.size() == by_default.size());
}
