#include <catch2/catch.hpp>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/mapping.h"
#include "ir/tensor/text/parser.h"
#include "passes/gpu/gemm/gemv/gemv.h"
#include "runtime/cuda/kernel_cache.h"
#include "tests/cuda/compile/local_nvrtc.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/tensors/compare_tensors.h"

/// GEMV and small-M matmuls, as in decoding.
using namespace lathe;
using lathe::test::HostCuda;
using lathe::test::ProgramInterpreter;

namespace {

struct GemvCase {
  std::string_view what, text, loads;
  double bound = 1e-5;
};

constexpr GemvCase gemv_cases[] = {
    {"weights along what is summed, an epilogue, operands computed",
     R"(graph @along_k(input %x: f32[1, 768], input %w: f32[40, 768], input %b: f32[40]) {
  %1 = relu %x
  %2 = linear %1, %w
  %3 = add %2, %b
  %4 = gelu %3
  output "y" %4
})",
     "load_aligned<4>"},
    {"a ragged sum of unknown length and ragged columns of eight rows",
     R"(graph @ragged(input %x: f32[8, k], input %w: f32[37, k]) {
  %1 = linear %x, %w
  output "y" %1
})",
     "load<4>"},
    {"a long sum by all threads of a block", R"(graph @long(input %x: f32[3, 8192], input %w: f32[5, 8192]) {
  %1 = linear %x, %w
  output "y" %1
})",
     "load_aligned<4>"},
    {"weights along the columns, an epilogue",
     R"(graph @along_n(input %x: f32[2, 300], input %w: f32[300, 132], input %r: f32[2, 132]) {
  %1 = matmul %x, %w
  %2 = add %1, %r
  output "y" %2
})",
     "load_aligned<4>"},
    {"ragged columns, an unknown sum", R"(graph @columns(input %x: f32[8, k], input %w: f32[k, 37]) {
  %1 = matmul %x, %w
  output "y" %1
})",
     "load<4>"},
    {"bf16 along what is summed", R"(graph @bf16(input %x: bf16[4, 1024], input %w: bf16[24, 1024]) {
  %1 = linear %x, %w
  output "y" %1
})",
     "load_aligned<8>", 8e-3},
    {"f16 along the columns, with sums of 8 rows in registers",
     R"(graph @f16(input %x: f16[8, 264], input %w: f16[264, 72]) {
  %1 = matmul %x, %w
  output "y" %1
})",
     "load_aligned<4>", 8e-3},
    {"f64", R"(graph @f64(input %x: f64[5, 96], input %w: f64[12, 96], input %v: f64[96, 12]) {
  %1 = linear %x, %w
  %2 = matmul %x, %v
  %3 = add %1, %2
  output "y" %3
})",
     "load_aligned<2>", 1e-12},
    {"heads: scores and weighted sums of a token with a cache of unknown length",
     R"(graph @heads(input %q: f32[3, 1, 16], input %k: f32[3, t, 16], input %v: f32[3, t, 16], input %row: f32[3, 1, 16],
    input %here: bool[t, 1]) {
  %1 = where %here, %row, %k
  %2 = transpose %1 {dim0=1, dim1=2}
  %3 = matmul %q, %2
  %4 = matmul %3, %v
  output "y" %4
})",
     "load_aligned<4>"},
    {"nothing to sum", R"(graph @nothing(input %x: f32[2, 0], input %w: f32[0, 36]) {
  %1 = matmul %x, %w
  output "y" %1
})",
     ""}};

ir::Graph gemv_graph(const GemvCase& c) { return ir::parse_graph(std::string(c.text), "gemv"); }

}  // namespace

TEST_CASE("gemv: both layouts, ragged k and columns, dtypes, batches") {
  std::vector<ProgramInterpreter> programs;
  std::vector<kernel::Kernel> kernels;
  for (const GemvCase& c : gemv_cases) {
    programs.emplace_back(gemv_graph(c), lower_gpu_sm_90a);
    const auto& own = programs.back().program().kernels;
    INFO(c.what);
    std::string text;
    for (const kernel::Kernel& k : own) text += cuda::emit(k, gpu_info("sm_90a"));
    INFO(text);
    CHECK(text.find(c.loads) != text.npos);
    CHECK(text.find("left[") == text.npos);  // no tile
    kernels.insert(kernels.end(), own.begin(), own.end());
  }
  const auto host = HostCuda::build(kernels);
  for (std::size_t i = 0; i < std::size(gemv_cases); ++i) {
    const GemvCase& c = gemv_cases[i];
    INFO(c.what);
    const ir::Graph graph = gemv_graph(c);
    for (const std::int64_t size : {1, 203}) {
      const Tensors arguments = test::random_arguments(graph, {{"k", size}, {"t", size}});
      const Tensors expected = ir::interpret(graph, arguments), found = programs[i].run(arguments);
      CHECK(test::error_of(found.at("y"), expected.at("y")) <= c.bound);
      if (!host) continue;
      const Tensors by_text = programs[i].run(arguments, [&](const auto& kernel, auto buffers, auto dims) {
        return host->run(kernel, buffers, dims, 1);
      });
      CHECK(test::error_of(by_text.at("y"), found.at("y")) <= (i == 0 ? 1e-6 : 0));
    }
  }
}

TEST_CASE("a row of a small-M matmul has the same bits for any number of rows") {
  for (const std::string_view w : {"f32[24, 640]", "f32[640, 24]"}) {
    const auto product = [&](int rows) {
      const std::string m = std::to_string(rows);
      const std::string op = w == "f32[24, 640]" ? "linear" : "matmul";
      return ir::parse_graph("graph @rows(input %x: f32[" + m + ", 640], input %w: " + std::string(w) +
                                 ") {\n  %1 = " + op + " %x, %w\n  output \"y\" %1\n}",
                             "gemv");
    };
    const Tensors three = test::random_arguments(product(3), {});
    Tensors one = test::random_arguments(product(1), {});
    one.at("w") = three.at("w");
    for (std::int64_t i = 0; i < 640; ++i) one.at("x").set(i, three.at("x").get(640 + i));
    const HostTensor all = ProgramInterpreter(product(3), lower_gpu_sm_90a).run(three).at("y"),
                     own = ProgramInterpreter(product(1), lower_gpu_sm_90a).run(one).at("y");
    for (std::int64_t i = 0; i < 24; ++i) CHECK(own.get(i) == all.get(24 + i));
  }
}

TEST_CASE("matmuls with more rows or an unknown number of rows use tiles") {
  for (const std::string_view rows : {"9", "m"}) {
    const ir::Graph graph = ir::parse_graph("graph @many(input %x: f32[" + std::string(rows) +
                                                ", 64], input %w: f32[64, 64]) {\n  %1 = matmul %x, %w\n"
                                                "  output \"y\" %1\n}",
                                            "gemv");
    const Program program = ProgramInterpreter(graph, lower_gpu_sm_90a).program();
    CHECK(cuda::emit(program.kernels.at(0), gpu_info("sm_90a")).find("left[") != std::string::npos);
  }
}

TEST_CASE("gemv is split to saturate memory bandwidth") {
  const GpuInfo& gpu = gpu_info("sm_90a");
  const auto dots = [&](std::int64_t columns, std::int64_t k) { return gpu::plan_dots(gpu, 4, columns, k); };
  CHECK(dots(50257, 768).split == 32);
  CHECK(dots(768, 768).split == 32);
  CHECK(dots(768, 768).at_once == 6);
  CHECK(dots(768, 3072).split == 128);
  CHECK(dots(12 * 1024, 64).split == 8);
  const auto columns = [&](std::int64_t n, std::int64_t k) {
    return gpu::plan_columns([&](int) { return gpu.static_shared_bytes; }, 4, 1, 4, 1, n, k);
  };
  CHECK(columns(768, 3072).threads == 512);
  CHECK(columns(768, 3072).split == 256);  // 96 blocks
  CHECK(columns(768, 3072).at_once == 6);
  CHECK(columns(3072, 768).split == 64);  // 96 blocks too
  CHECK(columns(50264, 768).split == 64);
}

TEST_CASE("gemv does not spill") {
  const auto nvrtc = test::local_nvrtc();
  if (!nvrtc) return;
  for (const GemvCase& c : gemv_cases) {
    const Program program = ProgramInterpreter(gemv_graph(c), lower_gpu_sm_90a).program();
    for (const char* arch : {"sm_80", "sm_90a", "sm_100a"})
      for (const auto& k :
           cuda::compile_kernels(*nvrtc, program.kernels, cuda::Arch::named(arch), cuda::Output::cubin, nullptr)) {
        INFO(arch << " " << k.symbol << ": " << k.resources.to_string());
        CHECK(k.resources.spill_bytes == 0);
        CHECK(k.resources.registers <= 128);
      }
  }
}
