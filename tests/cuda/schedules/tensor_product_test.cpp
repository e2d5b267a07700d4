#include <catch2/catch.hpp>

#include <fstream>
#include <iterator>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/mapping.h"
#include "ir/tensor/text/parser.h"
#include "runtime/cuda/kernel_cache.h"
#include "tests/cuda/compile/local_nvrtc.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/tensors/compare_tensors.h"
#include "tests/support/texts/test_data.h"

/// Matmuls of bf16 and f16 by tensor cores.
using namespace lathe;
using lathe::test::HostCuda;
using lathe::test::ProgramInterpreter;

namespace {

struct Case {
  std::string_view what, text;
  int threads;           ///< threads per block: 256 for tiles of 128 x 128
  int async_copies = 0;  ///< operands that are copied asynchronously
  std::size_t kernels = 1;
};

constexpr Case cases[] = {
    {"both operands along k, ragged rows, an epilogue",
     R"(graph @forward(input %x: bf16[m, 200], input %w: bf16[136, 200], input %b: bf16[136], input %r: bf16[m, 136]) {
  %1 = linear %x, %w
  %2 = add %1, %b
  %3 = gelu %2
  %4 = add %3, %r
  output "y" %4
})",
     256, 2},
    {"the right operand along its rows", R"(graph @dx(input %x: f16[m, 40], input %w: f16[40, 136]) {
  %1 = matmul %x, %w
  output "y" %1
})",
     256, 2},
    {"both operands along their rows, a long sum in splits, an epilogue",
     R"(graph @dw(input %x: bf16[k, 72], input %dy: bf16[k, 70], input %w: f32[72, 70]) {
  %1 = transpose %x {dim0=0, dim1=1}
  %2 = matmul %1, %dy
  %3 = cast %2 {dtype=f32}
  %4 = add %3, %w
  output "y" %4
})",
     128, 1, 2},
    {"rows that are no multiples of 16 bytes", R"(graph @ragged(input %x: bf16[m, 149], input %w: bf16[149, 30]) {
  %1 = matmul %x, %w
  output "y" %1
})",
     128, 0},
    {"few rows, operands that are computed on the way, a result in f32",
     R"(graph @computed(input %x: f32[13, 48], input %w: f32[70, 48]) {
  %1 = cast %x {dtype=bf16}
  %2 = cast %w {dtype=bf16}
  %3 = linear %1, %2
  %4 = cast %3 {dtype=f32}
  output "y" %4
})",
     128, 0},
    {"batches of heads side by side in memory",
     R"(graph @heads(input %q: bf16[2, s, 3, 16], input %k: bf16[2, s, 3, 16]) {
  %1 = transpose %q {dim0=1, dim1=2}
  %2 = permute %k {dims=[0, 2, 3, 1]}
  %3 = matmul %1, %2
  output "y" %3
})",
     256, 2}};

int copies_of(const kernel::Kernel& kernel) {
  const std::string text = cuda::emit(kernel, gpu_info("sm_80"));
  return static_cast<int>(text.find("async_copy(left") != text.npos) +
         static_cast<int>(text.find("async_copy(right") != text.npos);
}

}  // namespace

TEST_CASE("products by tensor cores: both axes of both operands, ragged edges, epilogues") {
  std::vector<ProgramInterpreter> programs;
  std::vector<kernel::Kernel> kernels;
  for (const Case& c : cases) {
    programs.emplace_back(ir::parse_graph(std::string(c.text), "product"), lower_gpu);
    const auto& own = programs.back().program().kernels;
    INFO(c.what);
    REQUIRE(own.size() == c.kernels);
    CHECK(cuda::mapping_of(own[0], gpu_info("sm_80")).block_size() == c.threads);
    CHECK(copies_of(own[0]) == c.async_copies);
    kernels.insert(kernels.end(), own.begin(), own.end());
  }
  const auto host = HostCuda::build(kernels);
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    INFO(cases[i].what);
    const ir::Graph graph = ir::parse_graph(std::string(cases[i].text), "product");
    const Tensors arguments = test::random_arguments(graph, {{"m", 131}, {"k", 333}, {"s", 10}});
    const Tensors expected = ir::interpret(graph, arguments), found = programs[i].run(arguments);
    CHECK(test::error_of(found.at("y"), expected.at("y")) <= 8e-3);
    if (!host) continue;
    const Tensors by_text = programs[i].run(
        arguments, [&](const auto& kernel, auto buffers, auto dims) { return host->run(kernel, buffers, dims, 1); });
    CHECK(test::same_bits(by_text.at("y"), found.at("y")));
  }
}

TEST_CASE("matmuls by tensor cores compile to tensor core instructions without spills") {
  const auto nvrtc = test::local_nvrtc();
  if (!nvrtc) return;
  std::vector<kernel::Kernel> kernels;
  for (const Case& c : cases)
    kernels.push_back(
        ProgramInterpreter(ir::parse_graph(std::string(c.text), "product"), lower_gpu).program().kernels[0]);
  for (const auto& k :
       cuda::compile_kernels(*nvrtc, kernels, cuda::Arch::named("sm_80"), cuda::Output::ptx, nullptr)) {
    INFO(k.symbol);
    CHECK(k.code.find("mma.sync.aligned.m16n8k16") != std::string::npos);
    CHECK(k.code.find("ldmatrix.sync.aligned") != std::string::npos);
  }
  for (const char* arch : {"sm_80", "sm_90a", "sm_100a"})
    for (const auto& k :
         cuda::compile_kernels(*nvrtc, kernels, cuda::Arch::named(arch), cuda::Output::cubin, nullptr)) {
      INFO(arch << " " << k.symbol << ": " << k.resources.to_string());
      CHECK(k.resources.spill_bytes == 0);
      CHECK(k.resources.stack_bytes == 0);
      CHECK(k.resources.registers <= 128);
    }
}

TEST_CASE("a matmul by tensor cores prints as CUDA C++") {
  const ir::Graph graph = ir::parse_graph(R"(graph @small(input %x: bf16[16, 96], input %w: bf16[96, 64]) {
  %1 = matmul %x, %w loc("mlp.cpp":14)
  output "y" %1
})",
                                          "small");
  const Program program = ProgramInterpreter(graph, lower_gpu).program();
  std::ifstream file(lathe::test::test_data("cuda/schedules/small_product.cu"));
  CHECK(cuda::emit(program.kernels[0], gpu_info("sm_80")) == std::string(std::istreambuf_iterator<char>(file), {}));
}
