#include <catch2/catch.hpp>

#include "passes/shard/scaling.h"
#include "tests/ranks/support.h"
#include "tests/support/once_store.h"

/// What compiled steps send, against what the pass predicts.
namespace lathe::test {

namespace {

std::vector<Division> divisions() {
  return {{"data=3", "B:data"},
          {"data=4", "B:data"},
          {"model=2", by_model},
          {"data=2,model=2", "B:data," + by_model},
          {"data=4", "B:data", {.states = "data"}},
          {"data=4", "B:data", {.parameters = "data"}},
          {"data=4", "B:data", {.parameters = "data", .gather_again = false}},
          {"data=2,seq=2", "B:data,T:seq"},
          {"data=2,fsdp=2", "B:data,B:fsdp", {.states = "data", .parameters = "fsdp"}}};
}

}  // namespace

TEST_CASE("ranks: every rank sends the bytes that are predicted, scalars apart") {
  constexpr int steps = 2;
  for (const ir::Graph& step : {small_step(f32, 0.5, 1), small_llama_step(f32)}) {
    OnceStore cache;
    for (Division division : divisions()) {
      CAPTURE(step.name, division.mesh, division.parts.states, division.parts.parameters);
      division.cache = &cache;
      const shard::Mesh mesh = shard::Mesh::parse(division.mesh);
      const shard::Sharded sharded = shard::shard(step, mesh, shard::parse_splits(division.splits), division.parts);
      const std::int64_t batch = mesh[0].ranks == 3 ? 6 : 8;
      const DimBindings dims = shard::local_dims(sharded, {{"B", batch}, {"T", 6}});
      const Trained trained = train_in_threads(step, steps, division, batch);
      for (std::int64_t r = 0; r < mesh.size(); ++r) {
        const shard::SentBytes predicted = shard::bytes_sent(sharded, r, dims);
        const shard::SentBytes& sent = trained.sent[static_cast<std::size_t>(r)];
        CHECK(sent.tensors == steps * predicted.tensors);
        CHECK(sent.scalars == steps * predicted.scalars);
        CHECK(predicted.tensors > 0);
      }
    }
  }
}

}  // namespace lathe::test
