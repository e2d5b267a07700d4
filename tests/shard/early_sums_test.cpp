#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/shard/support.h"

namespace lathe::shard::test {

namespace {

/// Of the bytes of gradients that data=2 sums, the part in exchanges that may begin before the last gradient is made;
/// of a GPT whose embeddings, 64 MiB, are its output layer too: their gradient is whole when the backward pass ends.
double early_part(const ShardOptions& parts) {
  models::GptConfig config = lathe::test::divisible_gpt(12, 0, f32);
  config.d_model = Dim("d_model", 512);
  config.vocab = Dim("vocab", 1 << 15);
  const ir::Graph step = lathe::test::gpt_step(config, AdamW{}, {.clip_norm = 1});
  const Sharded sharded = shard(step, Mesh::parse("data=2"), {{"B", "data"}}, parts);
  const Program program = program_of(sharded.graph);
  int last = 0;
  for (const lathe::Exchange& exchange : program.exchanges)
    if (exchange.kind != lathe::Exchange::Kind::all_gather) last = std::max(last, exchange.start);
  double all = 0, early = 0;
  for (const lathe::Exchange& exchange : program.exchanges) {
    if (exchange.kind == lathe::Exchange::Kind::all_gather) continue;
    for (const lathe::Exchange::Part& part : exchange.parts) {
      if (!part.elements.value()) continue;
      all += static_cast<double>(*part.elements.value());
      if (exchange.start < last) early += static_cast<double>(*part.elements.value());
    }
  }
  return early / all;
}

}  // namespace

TEST_CASE("shard: gradients are on their way before the last one is made, those of embeddings too") {
  CHECK(early_part({}) > 0.8);
  CHECK(early_part({.states = "data"}) > 0.8);
}

}  // namespace lathe::shard::test
