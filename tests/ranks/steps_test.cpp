#include <algorithm>
#include <catch2/catch.hpp>
#include <iterator>

#include "tests/ranks/support.h"
#include "tests/support/graphs/divisible_steps.h"
#include "tests/support/graphs/recurrent_steps.h"
#include "tests/support/programs/once_store.h"

/// Compiled training steps on several ranks, in threads of this process.
namespace lathe::test {

namespace {

/// Returns a mesh without sharding, with sharded states, and with sharded parameters, over these axes.
std::vector<Division> with_parts(const std::string& mesh, const std::string& splits, const std::string& states,
                                 const std::string& parameters) {
  return {{mesh, splits},
          {mesh, splits, {.states = states}},
          {mesh, splits, {.states = states, .parameters = parameters}}};
}

/// Trains 20 steps with each division and on one process; parameters named in `noisy` are not compared.
void check_steps(const ir::Graph& step, const std::vector<Division>& divisions, double most,
                 const std::vector<std::string>& noisy = {}) {
  OnceStore cache;
  const Tensors start = start_of(step);
  Trained one = train(step, 20, &start);
  for (const std::string& name : noisy) REQUIRE(one.states.erase(name) == 1);
  for (Division division : divisions) {
    division.cache = &cache;
    division.start = &start;
    CAPTURE(step.name, division.mesh, division.parts.states, division.parts.parameters);
    Trained many = train_in_threads(step, 20, division);
    for (auto state = many.states.begin(); state != many.states.end();)
      state = one.states.contains(state->first) ? std::next(state) : many.states.erase(state);
    CHECK(difference(many, one) < most);
  }
}

/// The gradient of a key bias is 0 except for rounding errors, which AdamW turns into steps of normal size.
const std::vector<std::string> key_biases = {"h.0.attn.c_attn.bias"};

void check_gpt(const std::vector<Division>& divisions, DType dtype) {
  check_steps(small_step(dtype), divisions, dtype == f64 ? 1e-10 : 2e-5,
              dtype == f64 ? std::vector<std::string>{} : key_biases);
}
void check_llama(const std::vector<Division>& divisions, DType dtype) {
  check_steps(small_llama_step(dtype), divisions, dtype == f64 ? 1e-10 : 2e-5);
}

std::vector<Division> two_along_data() { return with_parts("data=2", "B:data", "data", "data"); }
std::vector<Division> four_along_data() { return with_parts("data=4", "B:data", "data", "data"); }
std::vector<Division> along_model() {
  std::vector<Division> all = with_parts("model=2", by_model, "model", "model");
  std::ranges::copy(with_parts("model=4", by_model, "model", "model"), std::back_inserter(all));
  return all;
}
std::vector<Division> two_axes() { return with_parts("data=2,model=2", "B:data," + by_model, "data", "data"); }
std::vector<Division> three_axes() {
  return with_parts("data=2,fsdp=2,model=2", "B:data,B:fsdp," + by_model, "data", "fsdp");
}

}  // namespace

TEST_CASE("ranks: 20 steps of GPT-2 on data=2 match one process in f64") { check_gpt(two_along_data(), f64); }
TEST_CASE("ranks: 20 steps of GPT-2 on data=4 match one process in f64") { check_gpt(four_along_data(), f64); }
TEST_CASE("ranks: 20 steps of GPT-2 on model=2 and 4 match one process in f64") { check_gpt(along_model(), f64); }
TEST_CASE("ranks: 20 steps of GPT-2 on two axes match one process in f64") { check_gpt(two_axes(), f64); }
TEST_CASE("ranks: 20 steps of GPT-2 on three axes match one process in f64") { check_gpt(three_axes(), f64); }
TEST_CASE("ranks: 20 steps of GPT-2 on data=2 match one process in f32") { check_gpt(two_along_data(), f32); }
TEST_CASE("ranks: 20 steps of GPT-2 on data=4 match one process in f32") { check_gpt(four_along_data(), f32); }
TEST_CASE("ranks: 20 steps of GPT-2 on model=2 and 4 match one process in f32") { check_gpt(along_model(), f32); }
TEST_CASE("ranks: 20 steps of GPT-2 on two axes match one process in f32") { check_gpt(two_axes(), f32); }
TEST_CASE("ranks: 20 steps of GPT-2 on three axes match one process in f32") { check_gpt(three_axes(), f32); }
TEST_CASE("ranks: 20 steps of Llama on data=2 match one process in f64") { check_llama(two_along_data(), f64); }
TEST_CASE("ranks: 20 steps of Llama on data=4 match one process in f64") { check_llama(four_along_data(), f64); }
TEST_CASE("ranks: 20 steps of Llama on model=2 and 4 match one process in f64") { check_llama(along_model(), f64); }
TEST_CASE("ranks: 20 steps of Llama on two axes match one process in f64") { check_llama(two_axes(), f64); }
TEST_CASE("ranks: 20 steps of Llama on three axes match one process in f64") { check_llama(three_axes(), f64); }
TEST_CASE("ranks: 20 steps of Llama on data=2 match one process in f32") { check_llama(two_along_data(), f32); }
TEST_CASE("ranks: 20 steps of Llama on data=4 match one process in f32") { check_llama(four_along_data(), f32); }
TEST_CASE("ranks: 20 steps of Llama on model=2 and 4 match one process in f32") { check_llama(along_model(), f32); }
TEST_CASE("ranks: 20 steps of Llama on two axes match one process in f32") { check_llama(two_axes(), f32); }
TEST_CASE("ranks: 20 steps of Llama on three axes match one process in f32") { check_llama(three_axes(), f32); }

TEST_CASE("ranks: 20 steps with a split sequence match one process") {
  const std::vector<Division> all{{"seq=2", "T:seq"}, {"data=2,seq=2", "B:data,T:seq", {.states = "data"}}};
  check_steps(small_step(f64), all, 1e-10);
  check_steps(small_step(f32), all, 2e-5, key_biases);
  check_steps(small_llama_step(f64), all, 1e-10);
  check_steps(small_llama_step(f32), all, 2e-5);
}

TEST_CASE("ranks: steps with updates before later gradients match one process") {
  // Large enough that updates wait for later sums, not for the end of the step.
  models::GptConfig config = divisible_gpt(6, 0, f32);
  config.d_model = Dim("d_model", 512);
  const ir::Graph step = gpt_step(config, AdamW{.lr = 1e-3}, {});
  const Tensors start = start_of(step);
  Trained one = train(step, 2, &start);
  for (Division division : two_along_data()) {
    division.start = &start;
    CAPTURE(division.parts.states, division.parts.parameters);
    const Trained many = train_in_threads(step, 2, division);
    for (std::size_t i = 0; i < 2; ++i) CHECK(many.losses[i] == Approx(one.losses[i]).epsilon(2e-5));
    CHECK(same_bits(train_in_threads(step, 2, division), many));
  }
}

TEST_CASE("ranks: the same mesh gives the same bits each time and for any number of threads or bucket size") {
  const ir::Graph step = small_step(f32);
  OnceStore cache;
  const Division division{"data=2,model=2", "B:data," + by_model, {}, &cache};
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

TEST_CASE("ranks: training steps with loops, split over the batch, match one process") {
  const std::vector<Division> two{{"data=2", "B:data"}, {"data=2", "B:data", {.states = "data"}}},
      four{{"data=4", "B:data", {.parameters = "data"}}, {"data=2,model=2", "B:data,vocab:model"}};
  for (const DType dtype : {f32, f64}) {
    const double most = dtype == f64 ? 1e-10 : 5e-5;
    check_steps(lstm_step(dtype), two, most);
    check_steps(lstm_step(dtype), four, most);
    check_steps(stacked_step(dtype), {two[0], four[0]}, most);
    check_steps(stacked_llama_step(3, dtype), {two[1], four[0]}, most);
  }
  check_steps(stacked_gpt_step(3, f64), {two[0], four[1]}, 1e-10);
  check_steps(gru_step(f64), {two[0]}, 1e-10);
  check_steps(mamba_step(f64), {two[0], four[1]}, 1e-10);
  check_steps(delta_step(f64), {two[0]}, 1e-10);
}

}  // namespace lathe::test
