#include <catch2/catch.hpp>

#include "tests/support/goldens/golden.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;

namespace {

const std::filesystem::path folder = test::test_data("goldens");

/// Compares losses, gradient norms and final parameters of a training run in f64, in the interpreter.
void check_training(const std::string& name) {
  const auto runner = golden::interpreter_runner();
  const auto files = golden::load(folder, name);
  const auto found = golden::compare_training(golden::find_case(name), files, *runner, f64, golden::f64_tolerance);
  INFO(golden::report(found));
  CHECK(found.size() > 2);
  CHECK(golden::all_good(found));
}

}  // namespace

TEST_CASE("golden curve encoder_decoder_pre_relu") { check_training("encoder_decoder_pre_relu"); }
TEST_CASE("golden curve encoder_decoder_post_gelu") { check_training("encoder_decoder_post_gelu"); }
TEST_CASE("golden curve gpt2_training") { check_training("gpt2_training"); }
TEST_CASE("golden curve llama_training") { check_training("llama_training"); }
