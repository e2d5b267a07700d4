#include <catch2/catch.hpp>

#include "tests/ranks/support.h"

/// Compiled training steps on several processes, in threads of this one.
namespace lathe::test {

namespace {

const std::string by_model = "h:model,d_ff:model,vocab:model";

std::vector<Division> divisions() {
  return {{"data=2", "B:data"},
          {"data=4", "B:data"},
          {"model=2", by_model},
          {"model=4", by_model},
          {"data=2,model=2", "B:data," + by_model},
          {"data=2,model=2", "B:data," + by_model, {.states = "data"}},
          {"data=4", "B:data", {.parameters = "data"}},
          {"data=2,fsdp=2,model=2", "B:data,B:fsdp," + by_model, {.states = "data", .parameters = "fsdp"}}};
}

}  // namespace

TEST_CASE("ranks: 20 steps of GPT-2 on every mesh are those of one process in f64") {
  const ir::Graph step = small_step(f64);
  const Trained one = train(step, 20);
  for (const Division& division : divisions()) {
    CAPTURE(division.mesh);
    CHECK(difference(train_in_threads(step, 20, division), one) < 1e-10);
  }
}

TEST_CASE("ranks: 20 steps of GPT-2 on every mesh are those of one process in f32") {
  const ir::Graph step = small_step(f32);
  Trained one = train(step, 20);
  // The gradient of a key's bias is 0 but for rounding, of which AdamW makes steps as large as any.
  for (const char* bias : {"h.0.attn.c_attn.bias", "h.1.attn.c_attn.bias"}) REQUIRE(one.states.erase(bias) == 1);
  for (const Division& division : divisions()) {
    CAPTURE(division.mesh);
    Trained many = train_in_threads(step, 20, division);
    std::erase_if(many.states, [&](const auto& state) { return !one.states.contains(state.first); });
    CHECK(difference(many, one) < 2e-5);
  }
}

TEST_CASE("ranks: the same mesh gives the same bits each time and for any number of threads or size of bucket") {
  const ir::Graph step = small_step(f32);
  const Division division{"data=2,model=2", "B:data," + by_model};
  const Trained first = train_in_threads(step, 5, division);
  CHECK(same_bits(train_in_threads(step, 5, division), first));
  Division other = division;
  other.threads = 2;
  CHECK(same_bits(train_in_threads(step, 5, other), first));
  for (const std::int64_t bytes : {0, 3000}) {
    other.bucket_bytes = bytes;
    CHECK(same_bits(train_in_threads(step, 5, other), first));
  }
}

}  // namespace lathe::test
