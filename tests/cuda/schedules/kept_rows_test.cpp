#include <catch2/catch.hpp>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/mapping.h"
#include "ir/tensor/text/parser.h"
#include "runtime/cuda/kernel_cache.h"
#include "tests/cuda/compile/local_nvrtc.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/cuda/host/racing_cuda.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/tensors/compare_tensors.h"

/// Long rows that several loops read: their blocks keep them in shared memory.
using namespace lathe;
using test::HostCuda;
using test::ProgramInterpreter;
using test::RacingCuda;

namespace {

struct Case {
  std::string_view graph;  ///< the body of a graph
  int threads;
  std::size_t loads;  ///< vector loads of the row in the text: one if it is kept
  double tolerance = 1e-5;

  ir::Graph parsed() const { return ir::parse_graph("graph @rows(" + std::string(graph) + "}", "rows"); }
};

const Case softmax{R"(input %x: bf16[m, 26003], input %t: i32[m, 1]) {
  %1 = cast %x {dtype=f32}
  %2 = max %1 {dims=[1], keepdim=true}
  %3 = sub %1, %2
  %4 = exp %3
  %5 = sum %4 {dims=[1], keepdim=true}
  %6 = iota {shape=[26003], dim=0, dtype=i32}
  %7 = eq %6, %t
  %8 = constant {dtype=f32, shape=[], values=[-inf]}
  %9 = where %7, %3, %8
  %10 = max %9 {dims=[1], keepdim=true}
  output "max" %2
  output "sum" %5
  output "own" %10
)",
                   256, 1, 1e-5};
const Case variance{R"(input %x: f32[m, 13000]) {
  %1 = mean %x {dims=[1], keepdim=true}
  %2 = sub %x, %1
  %3 = mul %2, %2
  %4 = mean %3 {dims=[1], keepdim=true}
  output "y" %2
  output "variance" %4
)",
                    256, 1};
/// As long as the logits of GPT-2, of which a multiprocessor keeps two rows.
const Case logits{R"(input %x: bf16[m, 50264]) {
  %1 = cast %x {dtype=f32}
  %2 = softmax %1 {dim=1}
  %3 = cast %2 {dtype=bf16}
  output "y" %3
)",
                  512, 1, 8e-3};
/// Short rows, rows of which no multiprocessor keeps two, rows that one loop reads.
constexpr std::string_view others[] = {R"(input %x: f32[m, 12000]) {
  %1 = softmax %x {dim=1}
  output "y" %1
)",
                                       R"(input %x: f32[m, 50000]) {
  %1 = softmax %x {dim=1}
  output "y" %1
)",
                                       R"(input %x: f32[m, 13000]) {
  %1 = max %x {dims=[1]}
  output "y" %1
)"};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("long rows are read from memory once, and kept in shared memory between the loops over them") {
  std::vector<ProgramInterpreter> programs;
  std::vector<kernel::Kernel> kernels;
  for (const Case* c : {&softmax, &variance, &logits}) {
    programs.emplace_back(c->parsed(), lower_gpu_sm_90a);
    REQUIRE(programs.back().program().kernels.size() == 1);
    kernels.push_back(programs.back().program().kernels[0]);
    const std::string text = cuda::emit(kernels.back(), gpu_info("sm_90a"));
    INFO(text);
    CHECK(count(text, "load_aligned<8>(b0") + count(text, "load_aligned<4>(b0") + count(text, "load<8>(b0") ==
          c->loads);
    CHECK(cuda::mapping_of(kernels.back(), gpu_info("sm_90a")).block_size() == c->threads);
    CHECK(cuda::mapping_of(kernels.back(), gpu_info("sm_90a")).shared_bytes <= 113 * 1024);
  }
  const auto host = HostCuda::build(kernels);
  std::size_t i = 0;
  for (const Case* c : {&softmax, &variance, &logits}) {
    const Tensors arguments = test::random_arguments(c->parsed(), {{"m", 3}}, 1, 26002);
    const Tensors expected = ir::interpret(c->parsed(), arguments);
    const auto agrees = [&](const Tensors& found) {
      for (const auto& [name, value] : expected) CHECK(test::error_of(found.at(name), value) <= c->tolerance);
    };
    agrees(programs[i].run(arguments));
    if (host)
      agrees(programs[i].run(arguments, [&](const auto& kernel, auto buffers, auto dims) {
        return host->run(kernel, buffers, dims, 1);
      }));
    ++i;
  }
}

TEST_CASE("other rows are not kept") {
  for (const std::string_view text : others) {
    INFO(text);
    const ir::Graph graph = ir::parse_graph("graph @rows(" + std::string(text) + "}", "rows");
    const ProgramInterpreter program(graph, lower_gpu_sm_90a);
    for (const kernel::Kernel& k : program.program().kernels)
      CHECK(cuda::mapping_of(k, gpu_info("sm_90a")).shared_bytes <= 16 * 1024);
  }
}

TEST_CASE("races: none when a block keeps its row") {
  const ProgramInterpreter program(variance.parsed(), lower_gpu_sm_90a);
  auto cuda = RacingCuda::build(program.program().kernels);
  if (!cuda) return;
  const Tensors arguments = test::random_arguments(variance.parsed(), {{"m", 2}});
  const Tensors found = program.run(
      arguments, [&](const auto& kernel, auto buffers, auto dims) { return cuda->run(kernel, buffers, dims); });
  for (const auto& [name, value] : ir::interpret(variance.parsed(), arguments))
    CHECK(test::error_of(found.at(name), value) <= 1e-5);
}

TEST_CASE("kernels that keep rows leave registers for two blocks, without spills") {
  const auto nvrtc = test::local_nvrtc();
  if (!nvrtc) return;
  const ProgramInterpreter program(logits.parsed(), lower_gpu_sm_90a);
  for (const auto& k : cuda::compile_kernels(*nvrtc, program.program().kernels, cuda::Arch::named("sm_90a"),
                                             cuda::Output::cubin, nullptr)) {
    INFO(k.symbol << ": " << k.resources.to_string());
    CHECK(k.resources.spill_bytes == 0);
    CHECK(k.resources.registers <= 64);
  }
}
