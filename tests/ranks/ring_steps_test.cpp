#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/ranks/support.h"
#include "tests/support/programs/once_store.h"

/// Compiled training steps with ring attention, in threads of this process.
namespace lathe::test {

namespace {

const shard::ShardOptions in_ring{.ring = shard::RingWay::always};

std::vector<Division> rings() {
  shard::ShardOptions in_parts = in_ring;
  in_parts.states = "data";
  return {{"seq=2", "T:seq", in_ring}, {"seq=3", "T:seq", in_ring}, {"data=2,seq=2", "B:data,T:seq", in_parts}};
}

/// Trains 20 steps on one process and in a ring; a parameter named `noisy` is not compared.
void check_ring(const ir::Graph& step, double most, const std::string& noisy = "") {
  OnceStore cache;
  Trained one = train(step, 20);
  one.states.erase(noisy);
  for (Division division : rings()) {
    division.cache = &cache;
    CAPTURE(step.name, division.mesh);
    Trained many = train_in_threads(step, 20, division);
    many.states.erase(noisy);
    CHECK(difference(many, one) < most);
  }
}

}  // namespace

TEST_CASE("ranks: 20 steps of GPT-2 with ring attention match one process in f64") {
  check_ring(small_step(f64), 1e-10);
}
TEST_CASE("ranks: 20 steps of Llama with ring attention match one process in f64") {
  check_ring(small_llama_step(f64), 1e-10);
}
TEST_CASE("ranks: 20 steps of GPT-2 with ring attention match one process in f32") {
  check_ring(small_step(f32), 2e-5, "h.0.attn.c_attn.bias");  // the gradient of key biases is 0 except for rounding
}
TEST_CASE("ranks: 20 steps of Llama with ring attention match one process in f32") {
  check_ring(small_llama_step(f32), 2e-5);
}

TEST_CASE("ranks: ring attention gives the same bits each time and for any number of threads") {
  const ir::Graph step = small_step(f32);
  OnceStore cache;
  Division division{"seq=3", "T:seq", in_ring, &cache};
  const Trained first = train_in_threads(step, 5, division);
  CHECK(same_bits(train_in_threads(step, 5, division), first));
  division.threads = 2;
  CHECK(same_bits(train_in_threads(step, 5, division), first));
}

}  // namespace lathe::test
