#include <catch2/catch.hpp>

#include <algorithm>

#include "ir/kernel/intrinsics/gpu/grid/grid_phases.h"
#include "ir/support/error.h"
#include "ir/tensor/text/parser.h"
#include "passes/program/program.h"
#include "runtime/executable_program.h"
#include "tests/cuda/device/decode_steps.h"
#include "tests/cuda/device/mock_gpu.h"

/// Steps that decode a token, whose launches are phases of one kernel: executables on a mock GPU.
using namespace lathe;
using lathe::test::DecodeStep;
using lathe::test::MockGpu;

namespace {

constexpr std::int64_t capacity = 16;

struct Step {
  const char* name;
  ir::Graph (*graph)(const DecodeStep& step);
};
constexpr Step steps[] = {{"gpt", test::gpt_step}, {"llama", test::llama_step}};

CompileOptions options(const MockGpu& gpu, bool joins) {
  CompileOptions made = gpu.options();
  made.lower.join_launches = joins;
  return made;
}

/// Decodes three tokens. Returns the results of all runs, and all states after them.
Tensors decode(const ir::Graph& graph, const DecodeStep& step, Executable& executable) {
  executable.parameters().set(test::decode_states(graph, capacity));
  Tensors all;
  for (const std::int64_t position : {5, 6, 9})
    for (auto& [name, value] : executable.run(test::decode_inputs(step, position), {{"length", position + 1}}))
      all.emplace(name + std::to_string(position), value);
  for (const auto& [name, value] : executable.parameters().values()) all.emplace(name, value);
  return all;
}

void check_same_bits(const Tensors& found, const Tensors& expected) {
  CHECK(found.size() == expected.size());
  for (const auto& [name, value] : expected) {
    INFO(name);
    CHECK(found.at(name).same_bits(value));
  }
}

std::size_t launches(MockGpu& gpu) {
  return static_cast<std::size_t>(std::ranges::count_if(
      gpu.driver().run_log, [](const auto& logged) { return logged.what.starts_with("launch "); }));
}

/// Returns the number of grid barriers in a token's one launch.
int barriers_of(const ir::Graph& graph) {
  const MockGpu gpu;
  const Executable executable = compile(graph, options(gpu, true));
  const Program& program = program_of(executable);
  REQUIRE(program.joined.size() == 1);
  CHECK(program.joined[0].end - program.joined[0].first == std::ssize(program.launches));
  const kernel::Kernel& kernel = program.kernels[program.joined[0].launch.kernel];
  return static_cast<int>(std::ranges::count_if(kernel.body, [&](const kernel::Statement& s) {
    return kernel::record_of(kernel, s) == &kernel::grid_barrier_record;
  }));
}

}  // namespace

TEST_CASE("joined launches: two barriers of a GPT-2, and two more per layer of a small Llama") {
  // One after elements are cleared, and one before the last appends.
  for (const DType dtype : {f32, bf16}) CHECK(barriers_of(test::gpt_step({1, dtype, 12})) == 2);
  // A Llama appends its rotated keys before the scores. Gate and up of this one are so short that each thread loads
  // all of them, so its last product follows a barrier too.
  for (const DType dtype : {f32, bf16}) CHECK(barriers_of(test::llama_step({1, dtype, 16})) == 2 * 16 + 2);
}

TEST_CASE("joined launches: a token is one launch, with the bits of separate launches") {
  for (const Step& each : steps)
    for (const DecodeStep& step : {DecodeStep{1, f32}, {3, f32}, {1, bf16}, {2, bf16}}) {
      INFO(each.name << " batch " << step.batch << " " << name(step.dtype));
      const ir::Graph graph = each.graph(step);
      MockGpu plain, joining;
      Executable separate = compile(graph, options(plain, false)), joined = compile(graph, options(joining, true));
      const Program& program = program_of(joined);
      CHECK(program_of(separate).joined.empty());
      REQUIRE(program.joined.size() == 1);
      CHECK(program.joined[0].first == 0);
      CHECK(program.joined[0].end == std::ssize(program.launches));
      check_same_bits(decode(graph, step, joined), decode(graph, step, separate));
      CHECK(launches(plain) == 3 * program.launches.size());
      CHECK(launches(joining) == 3);
    }
}

TEST_CASE("joined launches: the CUDA text on the host gives the bits of separate launches") {
  for (const Step& each : steps)
    for (const DecodeStep& step : {DecodeStep{1, f32, 1}, {2, bf16, 1}}) {
      INFO(each.name << " batch " << step.batch << " " << name(step.dtype));
      const ir::Graph graph = each.graph(step);
      MockGpu plain(MockGpu::By::cuda_text), joining(MockGpu::By::cuda_text);
      Executable separate = compile(graph, options(plain, false)), joined = compile(graph, options(joining, true));
      if (!joining.works()) return;
      check_same_bits(decode(graph, step, joined), decode(graph, step, separate));
      CHECK(launches(joining) == 3);
    }
}

TEST_CASE("joined launches: without cooperative launches, or room for the blocks, each launch runs on its own") {
  const DecodeStep step{1, f32, 1};
  const ir::Graph graph = test::gpt_step(step);
  MockGpu plain, without;
  without.driver().resident_blocks = 0;
  Executable separate = compile(graph, options(plain, false)), joined = compile(graph, options(without, true));
  check_same_bits(decode(graph, step, joined), decode(graph, step, separate));
  CHECK(launches(without) == launches(plain));
  CHECK(launches(without) == 3 * program_of(joined).launches.size());
}

TEST_CASE("joined launches: a failed check names the op and the source line of its launch") {
  const DecodeStep step{2, f32, 1};
  for (const Step& each : steps) {
    const ir::Graph graph = each.graph(step);
    const auto error = [&](bool joins, const Tensors& inputs) {
      MockGpu gpu;
      Executable executable = compile(graph, options(gpu, joins));
      executable.parameters().set(test::decode_states(graph, capacity));
      try {
        executable.run(inputs, {{"length", 4}});
      } catch (const UserError& failed) {
        return std::string(failed.what());
      }
      return std::string("no error");
    };
    for (const auto& [name, value] : {std::pair{"tokens", 50}, {"positions", 16}, {"positions", -1}}) {
      Tensors inputs = test::decode_inputs(step, 3);
      inputs.at(name).set_int(1, value);
      INFO(each.name << " " << name << " " << value);
      const std::string found = error(true, inputs);
      CHECK(found == error(false, inputs));
      CHECK_THAT(found, Catch::Contains("[index_range]"));
    }
  }
}

TEST_CASE("joined launches: a failed check ends a run, although phases await the row that it guards") {
  const DecodeStep step{1, f32, 1};
  const ir::Graph graph = test::gpt_step(step);
  MockGpu gpu(MockGpu::By::cuda_text);
  Executable executable = compile(graph, options(gpu, true));
  if (!gpu.works()) return;
  executable.parameters().set(test::decode_states(graph, capacity));
  Tensors inputs = test::decode_inputs(step, 3);
  inputs.at("tokens").set_int(0, 50);
  CHECK_THROWS_WITH(executable.run(inputs, {{"length", 4}}), Catch::Contains("[index_range]"));
}

TEST_CASE("joined launches: a traced run times each launch, with the same results") {
  const DecodeStep step{1, f32, 1};
  const ir::Graph graph = test::llama_step(step);
  MockGpu gpu;
  Executable executable = compile(graph, options(gpu, true));
  executable.parameters().set(test::decode_states(graph, capacity));
  const Tensors inputs = test::decode_inputs(step, 7);
  const DimBindings dims{{"length", 8}};
  std::vector<LaunchTime> times;
  const HostTensor traced = executable.run_traced(inputs, times, dims).at("logits");
  CHECK(times.size() == program_of(executable).launches.size());
  CHECK(executable.run(inputs, dims).at("logits").same_bits(traced));
}
