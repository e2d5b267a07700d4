#include <catch2/catch.hpp>

#include "runtime/executable.h"
#include "tests/support/golden.h"

using namespace lathe;

namespace {

const std::filesystem::path folder = std::filesystem::path(LATHE_TEST_DATA) / "goldens";

/// Runs graphs as machine code.
class CompiledRunner final : public golden::GoldenRunner {
 public:
  std::unique_ptr<golden::Program> prepare(const ir::Graph& graph) override {
    return std::make_unique<Compiled>(compile(graph));
  }

 private:
  class Compiled final : public golden::Program {
   public:
    explicit Compiled(Executable executable) : executable_(std::move(executable)) {}
    ir::Tensors run(const ir::Tensors& arguments) override {
      ir::Tensors inputs = arguments;
      for (const auto& slot : executable_.program().states) {
        const auto at = inputs.find(slot.name);
        if (at == inputs.end()) continue;
        executable_.set_state(slot.name, at->second);
        inputs.erase(at);
      }
      ir::Tensors results = executable_.run(inputs);
      for (const auto& [name, value] : executable_.states()) results.emplace(name, value);
      return results;
    }

   private:
    Executable executable_;
  };
};

void check(const std::string& name) {
  CompiledRunner runner;
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
