#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>

#include "tests/shard/support.h"

namespace lathe::shard::test {

namespace {

std::int64_t elements(const lathe::Collective::Part& part) { return part.elements.value().value_or(1); }

/// Returns the number of matmuls that run while the gradient of the embeddings is being reduced and other gradients
/// are still to be computed. For a GPT on data=2 with tied embeddings of 64 MiB and layers of 12 MiB.
int products_behind_embeddings(const ShardOptions& parts) {
  models::GptConfig config = lathe::test::divisible_gpt(12, 0, f32);
  config.d_model = Dim("d_model", 512);
  config.vocab = Dim("vocab", 1 << 15);
  const ir::Graph step = lathe::test::gpt_step(config, AdamW{}, {.clip_norm = 1});
  const Program program = program_of(shard(step, Mesh::parse("data=2"), {{"B", "data"}}, parts).graph);
  int embeddings = -1, last = -1;
  for (const lathe::Collective& collective : program.collectives)
    for (const lathe::Collective::Part& part : collective.parts) {
      if (collective.kind == lathe::Collective::Kind::all_gather || elements(part) == 1) continue;
      if (elements(part) == 512 << 15) embeddings = collective.start;
      last = std::max(last, collective.start);
    }
  REQUIRE(embeddings >= 0);
  const auto first = program.launches.begin();
  return static_cast<int>(std::count_if(first + embeddings, first + last, [](const Launch& launch) {
    return launch.info.kind == RegionKind::product;
  }));
}

}  // namespace

TEST_CASE("shard: matmuls of two gradient buckets overlap the reduction of the embedding gradient") {
  for (const ShardOptions& parts : {ShardOptions{}, ShardOptions{.states = "data"}})
    CHECK(products_behind_embeddings(parts) >= 12);
}

}  // namespace lathe::shard::test
