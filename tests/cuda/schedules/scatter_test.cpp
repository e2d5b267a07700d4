#include <fmt/core.h>
#include <catch2/catch.hpp>

#include "ir/tensor/text/parser.h"
#include "runtime/cuda/kernel_cache.h"
#include "tests/cuda/compile/local_nvrtc.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/cuda/host/racing_cuda.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/tensors/compare_tensors.h"

/// scatter_add with positions that are sorted in chunks: the sums equal the interpreter's bit for bit.
using namespace lathe;
using test::HostCuda;
using test::ProgramInterpreter;
using test::RacingCuda;

namespace {

struct ScatterCase {
  std::string_view what, text;
  std::int64_t rows;
  std::vector<DimBindings> sizes;
  std::size_t launches = 4;
};

/// Cases for chunks of 64 positions.
const std::vector<ScatterCase>& scatter_cases() {
  static const std::vector<ScatterCase> cases = {
      {"rows of f64",
       R"(graph @rows(input %x: f64[n, 5], input %i: i64[n]) {
  %1 = scatter_add %i, %x {dim=0, size=30}
  output "y" %1
})",
       30,
       {{{"n", 0}}, {{"n", 1}}, {{"n", 63}}, {{"n", 64}}, {{"n", 65}}, {{"n", 300}}}},
      {"indices in two dims, computed, of dims behind the first and before the last",
       R"(graph @computed(input %x: f64[3, b, n, 4], input %i: i64[b, n], input %j: i64[b, n]) {
  %1 = mul %i, %j
  %2 = exp %x
  %3 = scatter_add %1, %2 {dim=1, size=82}
  output "y" %3
})",
       10,
       {{{"b", 2}, {"n", 7}}, {{"b", 5}, {"n", 41}}}},
      {"of a known number, in several chunks, a size bound late",
       R"(graph @late(input %x: f64[200], input %i: i64[200], input %z: f64[m, 3]) {
  %1 = scatter_add %i, %x {dim=0, size=m}
  output "y" %1
})",
       20,
       {{{"m", 20}}, {{"m", 400}}}},
      {"in one chunk",
       R"(graph @one(input %x: f64[64, 3], input %i: i64[64]) {
  %1 = scatter_add %i, %x {dim=0, size=12}
  output "y" %1
})",
       12,
       {{}},
       3},
  };
  return cases;
}

ir::Graph scatter_graph(const ScatterCase& c) { return ir::parse_graph(std::string(c.text), "scatter"); }

Program lower_small_chunks(const ir::Graph& graph, const LowerOptions& options) {
  return lower(graph, gpu_machine(gpu_info("sm_90a"), {.reductions = {.sorted_positions = 64}}), options);
}

}  // namespace

TEST_CASE("scattered sums in several chunks: equal indices within and across chunks, empty rows") {
  std::vector<ProgramInterpreter> programs;
  std::vector<kernel::Kernel> kernels;
  for (const ScatterCase& c : scatter_cases()) {
    programs.emplace_back(scatter_graph(c), lower_small_chunks);
    const Program& program = programs.back().program();
    INFO(c.what);
    CHECK(program.launches.size() == c.launches);
    kernels.insert(kernels.end(), program.kernels.begin(), program.kernels.end());
  }
  const auto host = HostCuda::build(kernels);
  for (std::size_t i = 0; i < scatter_cases().size(); ++i) {
    const ScatterCase& c = scatter_cases()[i];
    const ir::Graph graph = scatter_graph(c);
    for (const DimBindings& dims : c.sizes)
      for (const std::int64_t top : {std::int64_t{0}, std::int64_t{2}, c.rows - 1}) {
        INFO(c.what << ", " << test::to_string(dims) << ", indices up to " << top);
        const Tensors arguments = test::random_arguments(graph, dims, 1, top);
        const HostTensor expected = ir::interpret(graph, arguments).at("y");
        const bool exact = c.text.find("exp") == c.text.npos;
        const auto agrees = [&](const HostTensor& found) {
          return exact ? test::same_bits(found, expected) : test::error_of(found, expected) <= 1e-13;
        };
        CHECK(agrees(programs[i].run(arguments).at("y")));
        if (!host) continue;
        const auto by_text = programs[i].run(arguments, [&](const auto& kernel, auto buffers, auto sizes) {
          return host->run(kernel, buffers, sizes);
        });
        CHECK(agrees(by_text.at("y")));
      }
  }
}

TEST_CASE("scattered sums with the chunk size of the GPU") {
  const ScatterCase& c = scatter_cases()[0];
  const ProgramInterpreter program(scatter_graph(c), lower_gpu_sm_90a);
  const std::int64_t positions = gpu::ReductionSizes{}.sorted_positions * 2 + 100;
  const Tensors arguments = test::random_arguments(scatter_graph(c), {{"n", positions}}, 1, c.rows - 1);
  CHECK(test::same_bits(program.run(arguments).at("y"), ir::interpret(scatter_graph(c), arguments).at("y")));
}

TEST_CASE("an index out of range is detected in any chunk") {
  const ScatterCase& c = scatter_cases()[0];
  const ProgramInterpreter program(scatter_graph(c), lower_small_chunks);
  for (const std::int64_t at : {0, 63, 64, 199})
    for (const std::int64_t index : {std::int64_t{-1}, c.rows, std::int64_t{1} << 62}) {
      INFO("index " << index << " at " << at);
      Tensors arguments = test::random_arguments(scatter_graph(c), {{"n", 200}}, 1, c.rows - 1);
      arguments.at("i").set(at, static_cast<double>(index));
      CHECK(test::outcome([&] { return program.run(arguments); }).label == "index_range");
    }
}

TEST_CASE("races: none when positions are sorted in several chunks") {
  const ScatterCase& c = scatter_cases()[0];
  const ProgramInterpreter program(scatter_graph(c), lower_small_chunks);
  auto cuda = RacingCuda::build(program.program().kernels);
  if (!cuda) return;
  const Tensors arguments = test::random_arguments(scatter_graph(c), {{"n", 150}}, 1, 9);
  const Tensors found = program.run(
      arguments, [&](const auto& kernel, auto buffers, auto sizes) { return cuda->run(kernel, buffers, sizes); });
  CHECK(test::same_bits(found.at("y"), ir::interpret(scatter_graph(c), arguments).at("y")));
}

TEST_CASE("scattered sums compile without spills, with 32-bit indices") {
  const auto nvrtc = test::local_nvrtc();
  if (!nvrtc) return;
  const ir::Graph graph = ir::parse_graph(R"(graph @table(input %x: bf16[b, t, 768], input %i: i64[b, t]) {
  %1 = scatter_add %i, %x {dim=0, size=50257}
  output "y" %1
})",
                                          "scatter");
  const ProgramInterpreter program(graph, lower_gpu_sm_90a);
  for (const char* arch : {"sm_80", "sm_90a", "sm_100a"})
    for (const auto& k : cuda::compile_kernels(*nvrtc, program.program().kernels, cuda::Arch::named(arch),
                                               cuda::Output::cubin, nullptr)) {
      INFO(arch << " " << k.symbol << ": " << k.resources.to_string());
      CHECK(k.resources.spill_bytes == 0);
      CHECK(k.resources.registers <= 64);
      CHECK(k.resources.shared_bytes <= 16 * 1024);
    }
}
