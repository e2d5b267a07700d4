#include <catch2/catch.hpp>

#include "tests/support/goldens/golden.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;

namespace {

const std::filesystem::path folder = test::test_data("goldens");

/// Compares every intermediate, output and gradient in f64, in the interpreter.
void check_values(const std::string& name) {
  const auto runner = golden::interpreter_runner();
  const auto files = golden::load(folder, name);
  const auto found = golden::compare_values(golden::find_case(name), files, *runner, f64, golden::f64_tolerance);
  INFO(golden::report(found));
  CHECK(found.size() > 4);
  CHECK(golden::all_good(found));
}

}  // namespace

TEST_CASE("golden attention_walkthrough") { check_values("attention_walkthrough"); }
TEST_CASE("golden encoder_decoder_pre_relu") { check_values("encoder_decoder_pre_relu"); }
TEST_CASE("golden encoder_decoder_post_gelu") { check_values("encoder_decoder_post_gelu"); }
TEST_CASE("golden encoder_decoder_pre_relu_smooth") { check_values("encoder_decoder_pre_relu_smooth"); }
TEST_CASE("golden encoder_decoder_post_relu_dv") { check_values("encoder_decoder_post_relu_dv"); }
TEST_CASE("golden llama_attention") { check_values("llama_attention"); }
TEST_CASE("golden einsum_attention") { check_values("einsum_attention"); }
TEST_CASE("golden einsum_table") { check_values("einsum_table"); }
TEST_CASE("golden attention_forms") { check_values("attention_forms"); }
TEST_CASE("golden mask_edges") { check_values("mask_edges"); }
TEST_CASE("golden gpt2_training") { check_values("gpt2_training"); }
TEST_CASE("golden llama_training") { check_values("llama_training"); }
