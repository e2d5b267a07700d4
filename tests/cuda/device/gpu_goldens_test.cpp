#include <catch2/catch.hpp>

#include "tests/cuda/device/mock_gpu.h"
#include "tests/support/programs/compiled_runner.h"
#include "tests/support/texts/test_data.h"

/// Every golden attention on a mock GPU, fused: outputs, intermediates and gradients equal those in the files. The
/// attentions of the GPT-2 and Llama goldens are covered by the training steps of cuda_programs_test.cpp and by
/// llama_attention.
using namespace lathe;
using lathe::test::MockGpu;

namespace {

void check(const char* name, MockGpu::By by = MockGpu::By::interpreter) {
  INFO(name);
  MockGpu gpu(by);
  CompileOptions options = gpu.options();
  options.lower.attention = AttentionFusion::required;
  golden::CompiledRunner runner(options);
  const auto files = golden::load(test::test_data("goldens"), name);
  const auto found = golden::compare_values(golden::find_case(name), files, runner, f32, golden::f32_tolerance);
  if (!gpu.works()) return;
  INFO(golden::report(found));
  CHECK(golden::all_good(found));
  CHECK(gpu.driver().alive() == 0);
}

}  // namespace

TEST_CASE("golden attention cases, fused, forward and backward, on a GPU") {
  for (const char* name :
       {"attention_walkthrough", "llama_attention", "einsum_attention", "attention_forms", "mask_edges"})
    check(name);
}

TEST_CASE("the encoder-decoder golden case, attention fused, forward and backward, on a GPU") {
  check("encoder_decoder_post_relu_dv");
}

TEST_CASE("a golden case, forward and backward, run from the CUDA text") {
  check("attention_forms", MockGpu::By::cuda_text);
}
