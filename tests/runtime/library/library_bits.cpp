#include <catch2/catch.hpp>

#include "codegen/llvm/target_cpu.h"
#include "frontend/initial_values.h"
#include "frontend/models/loss_graph.h"
#include "frontend/train/step.h"
#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/graphs/loop_cases.h"
#include "tests/support/graphs/small_models.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/library/library_golden.h"
#include "tests/support/library/library_runner.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;
using namespace lathe::test;

namespace {

struct Run {
  DimBindings dims;
  Tensors inputs;
};

/// Compares a library with compile() on the same target: outputs and states of several runs have the same bits, with
/// any number of workers.
void check_same_bits(const ir::Graph& graph, const std::vector<Initializer>& initializers,
                     const std::vector<Run>& runs, const DimBindings& most, const std::string& target) {
  CAPTURE(graph.name, target);
  LibraryRunner library({{"", graph}},
                        {.prefix = "lib", .targets = {target}, .most = most, .initializers = initializers});
  for (const int workers : {0, 1, 2, 7}) {
    CAPTURE(workers);
    Executable jit = compile(graph, {.target = Target::named(target), .threads = 2, .cache = shared_kernels()});
    library.init(runs[0].dims, 3);
    jit.parameters().set(initial_values(graph, initializers, 3, runs[0].dims));
    const auto check_states = [&] {
      for (const auto& [name, value] : library.states()) {
        CAPTURE(name);
        CHECK(same_bits(value, jit.parameters().get(name)));
      }
    };
    check_states();
    for (const Run& run : runs) {
      const Tensors expected = jit.run(run.inputs), found = library.run("lib", run.inputs, run.dims, workers);
      REQUIRE(found.size() == expected.size());
      for (const auto& [name, value] : expected) {
        CAPTURE(name);
        CHECK(same_bits(found.at(name), value));
      }
      check_states();
    }
  }
}

/// A training step of a small model, and its initial values.
struct Step {
  ir::Graph graph;
  std::vector<Initializer> initializers;
};

template <class Config>
Step step_of(const Config& config, const Optimizer& optimizer, const TrainingOptions& options = {.clip_norm = 1}) {
  models::LossGraph forward = models::loss_graph(config);
  return {training_step(forward.graph, "loss", optimizer, options), std::move(forward.initializers)};
}

std::vector<Run> token_runs(const std::vector<std::string>& names) {
  std::vector<Run> runs;
  for (const auto& [B, T] : {std::pair<std::int64_t, std::int64_t>{2, 9}, {3, 16}, {1, 1}}) {
    HostTensor ids(i64, {B, T + 1});
    for (std::int64_t i = 0; i < ids.numel(); ++i) ids.set_int(i, (i * 7) % 31);
    Run& run = runs.emplace_back(Run{{{"B", B}, {"T", T}, {"S", T + 1}}, {}});
    for (const std::string& name : names) run.inputs.set(name, ids);
  }
  return runs;
}

}  // namespace

TEST_CASE("library: training steps of a GPT have the bits of compile()", "[library]") {
  const Step step = step_of(small_gpt(), AdamW{.lr = 1e-3});
  for (const std::string_view target : codegen::TargetCpu::names())
    if (codegen::TargetCpu::named(target).runs_here())
      check_same_bits(step.graph, step.initializers, token_runs({"tokens"}), {{"B", 3}, {"T", 16}},
                      std::string(target));
}

TEST_CASE("library: training steps in bf16 and f64, of other models and optimizers", "[library]") {
  const DimBindings most{{"B", 3}, {"T", 16}};
  const Step llama = step_of(small_llama(bf16), AdamW{.lr = 1e-3});
  check_same_bits(llama.graph, llama.initializers, token_runs({"tokens"}), most, "host");
  const Step mixed = step_of(small_gpt(), Lion{}, {.precision = bf16});
  check_same_bits(mixed.graph, mixed.initializers, token_runs({"tokens"}), most, "host");
  const Step pair = step_of(small_encoder_decoder(f64), SGD{.lr = 0.1, .momentum = 0.9});
  check_same_bits(pair.graph, pair.initializers, token_runs({"src", "tgt"}), {{"B", 3}, {"S", 17}, {"T", 17}},
                  "host");
}

/// On a CPU with AMX, launches by fma run for few rows and launches by tiles for many.
TEST_CASE("library: products whose rows only a run knows have the bits of compile()", "[library]") {
  const ir::Graph graph = parse(R"(graph @rows(input %x: f32[n, 96], input %w: f32[96, 64], input %r: f32[n, 64]) {
  %y = matmul %x, %w
  %z = add %y, %r
  output "z" %z
})");
  std::vector<Run> runs;
  for (const std::int64_t n : {1, 767, 768, 900, 40})
    runs.push_back({{{"n", n}}, random_arguments(graph, {{"n", n}}, 1, 1)});
  check_same_bits(graph, {}, runs, {{"n", 900}}, "host");
}

TEST_CASE("library: weights that the caller packs once give the bits of compile()", "[library]") {
  const ir::Graph graph =
      parse(R"(graph @net(input %x: f32[n, 96], parameter %v: f32[200, 96], parameter %w: f32[200, 64]) {
  %1 = linear %x, %v
  %2 = gelu %1
  %3 = matmul %2, %w
  output "y" %3
})");
  const ir::Graph weights = parse(R"(graph @weights(parameter %v: f32[200, 96], parameter %w: f32[200, 64]) {
  %1 = exp %v
  %2 = exp %w
  output "1" %1
  output "2" %2
})");
  std::vector<std::string> targets = {"x86-64-v2"};
  for (const char* const more : {"x86-64-v3", "sapphirerapids"})
    if (codegen::TargetCpu::named(more).runs_here()) targets.push_back(more);
  LibraryRunner library({{"", graph}},
                        {.prefix = "lib", .targets = targets, .most = {{"n", 200}}, .packed_bytes = 1 << 24});
  Executable jit = compile(graph, {.target = Target::named(targets.back()), .threads = 2, .cache = shared_kernels()});
  library.init({{"n", 1}}, 3);
  for (const unsigned seed : {1U, 2U}) {
    library.set_states(random_arguments(weights, {}, seed));
    jit.parameters().set(random_arguments(weights, {}, seed));
    const Tensors packed = library.run("lib_pack", {}, {{"n", 1}}, 2);
    for (const std::int64_t n : {1, 20, 63, 64, 97, 200})
      for (const int workers : {0, 3}) {
        CAPTURE(seed, n, workers);
        Tensors inputs{{"x", random_arguments(graph, {{"n", n}}, 5).at("x")}};
        const Tensors expected = jit.run(inputs);
        inputs.set("packed_weights", packed.at("packed_weights"));
        CHECK(same_bits(library.run("lib", inputs, {{"n", n}}, workers).at("y"), expected.at("y")));
      }
  }
}

TEST_CASE("library: loops and their gradients have the bits of compile()", "[library]") {
  for (const LoopCase& each : loop_cases()) {
    const ir::Graph graph = each.graph(f32, false);
    check_same_bits(graph, {}, {{{}, each.arguments(f32)}}, {}, "host");
  }
}

TEST_CASE("library: golden cases have the bits of compile()", "[library]") {
  const std::filesystem::path folder = test_data("goldens");
  for (const golden::Case& which : golden::cases()) {
    CAPTURE(which.name);
    golden::LibraryGoldenRunner runner;
    const golden::Files files = golden::load(folder, which.name);
    for (const auto& found : {golden::compare_values(which, files, runner, f32, golden::f32_tolerance),
                              golden::compare_training(which, files, runner, f32, golden::f32_tolerance)}) {
      INFO(golden::report(found));
      CHECK(golden::all_good(found));
    }
  }
}
