#include <catch2/catch.hpp>

#include <algorithm>

#include <fmt/core.h>

#include "codegen/cuda/emitter.h"
#include "ir/kernel/printer.h"
#include "ir/tensor/text/parser.h"
#include "passes/gpu/join/phase_plan.h"
#include "runtime/cuda/kernel_cache.h"
#include "tests/cuda/compile/local_nvrtc.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/cuda/host/racing_cuda.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/tensors/compare_tensors.h"

/// Matmuls of few rows whose blocks compute these rows: norms, softmaxes, gates and rotations before a product.
using namespace lathe;
using lathe::test::HostCuda;
using lathe::test::ProgramInterpreter;
using lathe::test::RacingCuda;

namespace {

struct RowCase {
  std::string_view what, text;
  double bound = 1e-5;
  std::size_t launches = 1;
};

constexpr RowCase row_cases[] = {{"a layer norm, weights along the columns", R"(
graph @layer_norm(input %x: f32[2, 300], input %g: f32[300], input %b: f32[300], input %w: f32[300, 132]) {
  %1 = layer_norm %x, %g, %b
  %2 = matmul %1, %w
  output "y" %2
})"},
                                 {"an RMS norm for several products, more tiles than blocks", R"(
graph @rms_norm(input %x: f32[1, 96], input %g: f32[96], input %w: f32[2100, 96], input %v: f32[9, 96]) {
  %1 = rms_norm %x, %g
  %2 = linear %1, %w
  %3 = linear %1, %v
  output "y" %2
  output "z" %3
})",
                                  1e-5, 2},
                                 {"eight rows of 16 bits in chunks, a residual that others read", R"(
graph @chunks(input %x: bf16[8, 1300], input %r: bf16[8, 1300], input %g: bf16[1300], input %w: bf16[40, 1300]) {
  %1 = add %x, %r
  %2 = rms_norm %1, %g
  %3 = linear %2, %w
  output "y" %3
  output "sum" %1
})",
                                  8e-3, 2},
                                 {"a softmax over a length that is bound late, for the heads of a token", R"(
graph @softmax(input %s: f32[3, 2, t], input %v: f32[3, t, 16]) {
  %1 = softmax %s {dim=-1}
  %2 = matmul %1, %v
  output "y" %2
})"},
                                 {"a softmax of 16 bits, values along the length", R"(
graph @dots(input %s: bf16[3, 1, t], input %v: bf16[3, 24, t]) {
  %1 = softmax %s {dim=-1}
  %2 = contract %1, %v {spec="bmt,bnt->bmn"}
  output "y" %2
})",
                                  8e-3},
                                 {"a gate of two products", R"(
graph @gate(input %x: f32[1, 64], input %g: f32[200, 64], input %u: f32[200, 64], input %w: f32[200, 48]) {
  %1 = linear %x, %g
  %2 = linear %x, %u
  %3 = silu %1
  %4 = mul %3, %2
  %5 = matmul %4, %w
  output "y" %5
})",
                                  1e-5, 3},
                                 {"a rotated row, and one that is appended to a cache", R"(
graph @rotated(input %x: f32[2, 32], input %w: f32[32, 32], input %cos: f32[2, 32], input %sin: f32[2, 32],
               input %cache: f32[9, 32], input %at: i64[2], input %k: f32[40, 32]) {
  %1 = matmul %x, %w
  %2 = slice %1 {dim=1, start=0, stop=16}
  %3 = slice %1 {dim=1, start=16, stop=32}
  %4 = neg %3
  %5 = concat %4, %2 {dim=1}
  %6 = mul %1, %cos
  %7 = mul %5, %sin
  %8 = add %6, %7
  %9 = update_rows %cache, %at, %8 {dim=0}
  %10 = linear %8, %k
  output "y" %10
  output "cache" %9
})",
                                  1e-5, 4},
                                 {"nothing to sum", R"(graph @nothing(input %x: f32[2, 0], input %w: f32[0, 36]) {
  %1 = softmax %x {dim=1}
  %2 = matmul %1, %w
  output "y" %2
})"}};

ir::Graph graph_of(const RowCase& c) { return ir::parse_graph(std::string(c.text), "rows"); }

Tensors arguments_of(const ir::Graph& graph, std::int64_t t) {
  Tensors arguments = test::random_arguments(graph, {{"t", t}});
  if (arguments.contains("at")) arguments.set("at", HostTensor::from_ints({2}, {7, 3}));
  return arguments;
}

}  // namespace

TEST_CASE("row operands: each block computes the rows, with the values of the graph") {
  std::vector<ProgramInterpreter> programs;
  std::vector<kernel::Kernel> kernels;
  for (const RowCase& c : row_cases) {
    INFO(c.what);
    programs.emplace_back(graph_of(c), lower_gpu_sm_90a);
    const Program& program = programs.back().program();
    const auto& own = program.kernels;
    CHECK(program.launches.size() == c.launches);
    kernels.insert(kernels.end(), own.begin(), own.end());
  }
  const auto host = HostCuda::build(kernels);
  for (std::size_t i = 0; i < std::size(row_cases); ++i) {
    const RowCase& c = row_cases[i];
    INFO(c.what);
    const ir::Graph graph = graph_of(c);
    for (const std::int64_t t : {1, 203, 5000}) {
      if (t > 1 && c.text.find("t]") == std::string_view::npos) break;
      INFO("t = " << t);
      const Tensors arguments = arguments_of(graph, t);
      const Tensors expected = ir::interpret(graph, arguments), found = programs[i].run(arguments);
      for (const auto& [name, value] : expected) CHECK(test::error_of(found.at(name), value) <= c.bound);
      if (!host) continue;
      const auto by_text = [&](std::uint64_t seed) {
        return programs[i].run(arguments, [&](const auto& kernel, auto buffers, auto dims) {
          return host->run(kernel, buffers, dims, seed);
        });
      };
      const Tensors once = by_text(1), again = by_text(2);
      for (const auto& [name, value] : found) {
        CHECK(test::error_of(once.at(name), value) <= 1e-6);  // exp is that of the host
        CHECK(again.at(name).same_bits(once.at(name)));
      }
    }
  }
}

TEST_CASE("row operands: no races, with a thread for each thread of all blocks") {
  const std::pair<const RowCase&, std::int64_t> cases[] = {{row_cases[0], 1}, {row_cases[3], 1700}};
  for (const auto& [c, t] : cases) {
    INFO(c.what);
    ProgramInterpreter program(graph_of(c), lower_gpu_sm_90a);
    const Tensors arguments = arguments_of(graph_of(c), t);
    const auto run = [&](RacingCuda& racing) {
      return program.run(
          arguments, [&](const auto& kernel, auto buffers, auto dims) { return racing.run(kernel, buffers, dims); });
    };
    auto racing = RacingCuda::build(program.program().kernels);
    if (!racing) return;
    const Tensors expected = program.run(arguments), found = run(*racing);
    CHECK(test::error_of(found.at("y"), expected.at("y")) <= 1e-6);
  }
}

TEST_CASE("row operands: a block loads each element once, and its first weights before that") {
  const std::string_view graphs[] = {
      R"(graph @norm(input %x: bf16[1, 768], input %g: bf16[768], input %b: bf16[768], input %w: bf16[768, 96]) {
  %1 = layer_norm %x, %g, %b
  %2 = matmul %1, %w
  output "y" %2
})",
      R"(graph @long(input %x: bf16[1, 3072], input %w: bf16[3072, 768]) {
  %1 = matmul %x, %w
  output "y" %1
})",
      R"(graph @cache(input %s: bf16[2, 1, 256], input %v: bf16[2, 256, 32], input %at: i64[1], input %x: bf16[2, 1, 32]) {
  %1 = softmax %s {dim=-1}
  %2 = iota {dtype=i64, dim=1, shape=[1, 256, 1]}
  %3 = view %at {shape=[1, 1, 1]}
  %4 = eq %2, %3
  %5 = where %4, %x, %v
  %6 = matmul %1, %5
  output "y" %6
})"};
  for (const std::string_view text : graphs) {
    INFO(text);
    const Program program =
        ProgramInterpreter(ir::parse_graph(std::string(text), "rows"), lower_gpu_sm_90a).program();
    REQUIRE(program.launches.size() == 1);
    const Launch& launch = program.launches[0];
    const kernel::Kernel& kernel = program.kernels[static_cast<std::size_t>(launch.kernel)];
    const std::string printed = kernel::print(kernel);
    for (std::size_t p = 0; p < launch.buffers.size(); ++p) {
      const std::string& name = program.buffers[static_cast<std::size_t>(launch.buffers[p])].name;
      INFO(name);
      if (name == "x" || name == "s") CHECK(gpu::loads_of_thread(kernel, static_cast<kernel::BufferId>(p)) == 1);
      if (name == "w") CHECK(printed.find(fmt::format("load {}[", kernel.buffers[p].name)) < printed.find("barrier"));
    }
  }
}

TEST_CASE(
    "row operands: of rows of any length, a thread loads the first elements once, and those of all rows at a time") {
  for (const int rows : {1, 4}) {
    const std::string text = fmt::format(R"(graph @late(input %s: bf16[3, {0}, t], input %v: bf16[3, t, 16]) {{
  %1 = softmax %s {{dim=-1}}
  %2 = matmul %1, %v
  output "y" %2
}})",
                                         rows);
    const Program program = ProgramInterpreter(ir::parse_graph(text, "late"), lower_gpu_sm_90a).program();
    REQUIRE(program.launches.size() == 1);
    const Launch& launch = program.launches[0];
    const kernel::Kernel& kernel = program.kernels[static_cast<std::size_t>(launch.kernel)];
    const auto s = std::ranges::find_if(
        launch.buffers, [&](int b) { return program.buffers[static_cast<std::size_t>(b)].name == "s"; });
    const auto loads = gpu::loads_of_thread(kernel, static_cast<kernel::BufferId>(s - launch.buffers.begin()));
    INFO(rows << " rows");
    CHECK(loads <= (rows == 1 ? 1 : 4));  // those of later chunks included
  }
}

TEST_CASE("row operands: NVRTC spills nothing") {
  const auto nvrtc = test::local_nvrtc();
  if (!nvrtc) return;
  for (const RowCase& c : row_cases) {
    const Program program = ProgramInterpreter(graph_of(c), lower_gpu_sm_90a).program();
    for (const auto& k :
         cuda::compile_kernels(*nvrtc, program.kernels, cuda::Arch::named("sm_90a"), cuda::Output::cubin, nullptr)) {
      INFO(c.what << " " << k.symbol << ": " << k.resources.to_string());
      CHECK(k.resources.spill_bytes == 0);
    }
  }
}
