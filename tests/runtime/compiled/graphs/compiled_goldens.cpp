#include <catch2/catch.hpp>

#include "tests/support/programs/guarded_runner.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;

namespace {

const std::filesystem::path folder = test::test_data("goldens");

void check(const std::string& name) {
  golden::GuardedRunner runner;
  const auto files = golden::load(folder, name);
  const golden::Case& which = golden::find_case(name);
  for (const DType dtype : {f64, f32}) {
    const golden::Tolerance& tolerance = dtype == f64 ? golden::f64_tolerance : golden::f32_tolerance;
    for (const auto& found : {golden::compare_values(which, files, runner, dtype, tolerance),
                              golden::compare_training(which, files, runner, dtype, tolerance)}) {
      INFO(lathe::name(dtype) << "\n" << golden::report(found));
      CHECK(golden::all_good(found));
    }
  }
}

}  // namespace

TEST_CASE("compiled golden attention_walkthrough") { check("attention_walkthrough"); }
TEST_CASE("compiled golden encoder_decoder_pre_relu") { check("encoder_decoder_pre_relu"); }
TEST_CASE("compiled golden encoder_decoder_post_gelu") { check("encoder_decoder_post_gelu"); }
TEST_CASE("compiled golden encoder_decoder_pre_relu_smooth") { check("encoder_decoder_pre_relu_smooth"); }
TEST_CASE("compiled golden encoder_decoder_post_relu_dv") { check("encoder_decoder_post_relu_dv"); }
TEST_CASE("compiled golden llama_attention") { check("llama_attention"); }
TEST_CASE("compiled golden einsum_attention") { check("einsum_attention"); }
TEST_CASE("compiled golden einsum_table") { check("einsum_table"); }
TEST_CASE("compiled golden attention_forms") { check("attention_forms"); }
TEST_CASE("compiled golden mask_edges") { check("mask_edges"); }
TEST_CASE("compiled golden gpt2_training") { check("gpt2_training"); }
TEST_CASE("compiled golden llama_training") { check("llama_training"); }
