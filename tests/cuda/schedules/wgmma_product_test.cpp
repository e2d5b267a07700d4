#include <catch2/catch.hpp>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/mapping.h"
#include "ir/kernel/printer.h"
#include "ir/tensor/text/parser.h"
#include "runtime/cuda/kernel_cache.h"
#include "tests/cuda/compile/local_nvrtc.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/cuda/host/racing_cuda.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/tensors/compare_tensors.h"

/// Matmuls of bf16 and f16 by the warpgroups of sm_90a.
using namespace lathe;
using lathe::test::HostCuda;
using lathe::test::ProgramInterpreter;

namespace {

struct Case {
  std::string_view what, text;
  int stages;
  std::size_t kernels = 1;
  bool interprets = true;  ///< false: only as text, which is faster
  /// 384 if a warpgroup copies an operand instead of TMA boxes, 288 if nothing overlaps with the epilogue.
  int threads = 512;
};

constexpr Case cases[] = {
    {"both operands along k, ragged rows and columns, an epilogue",
     R"(graph @gated(input %x: bf16[m, 200], input %w: bf16[136, 200], input %g: bf16[m, 136], input %s: f32[136]) {
  %1 = linear %x, %w
  %2 = silu %1
  %3 = mul %2, %g
  %4 = cast %3 {dtype=f32}
  %5 = mul %4, %s
  output "y" %5
})",
     3},
    {"the right operand along its rows, few columns", R"(graph @dx(input %x: f16[m, 72], input %w: f16[72, 128]) {
  %1 = matmul %x, %w
  output "y" %1
})",
     6},
    {"both operands along their rows, a long sum in splits, an epilogue",
     R"(graph @dw(input %x: bf16[k, 256], input %dy: bf16[k, 512], input %w: f32[256, 512]) {
  %1 = transpose %x {dim0=0, dim1=1}
  %2 = matmul %1, %dy
  %3 = cast %2 {dtype=f32}
  %4 = add %3, %w
  output "y" %4
})",
     6, 2, false, 288},
    {"batches of heads side by side in memory",
     R"(graph @heads(input %q: bf16[2, s, 1, 64], input %k: bf16[2, s, 1, 64]) {
  %1 = transpose %q {dim0=1, dim1=2}
  %2 = permute %k {dims=[0, 2, 3, 1]}
  %3 = matmul %1, %2
  output "y" %3
})",
     3},
    {"rows with unequal steps, which cannot be TMA boxes, and weights that can",
     R"(graph @mixed(input %x: bf16[2, 3, s, 64], input %w: bf16[136, 64]) {
  %1 = permute %x {dims=[0, 2, 1, 3]}
  %2 = linear %1, %w
  output "y" %2
})",
     3, 1, true, 384},
    {"as few tiles as multiprocessors", R"(graph @few(input %x: bf16[1408, 8], input %w: bf16[1408, 8]) {
  %1 = linear %x, %w
  output "y" %1
})",
     6, 1, false, 288}};

constexpr std::string_view others[] = {
    R"(graph @ragged(input %x: bf16[m, 149], input %w: bf16[149, 256]) {
  %1 = matmul %x, %w
  output "y" %1
})",
    R"(graph @computed(input %x: f32[m, 64], input %w: bf16[256, 64]) {
  %1 = cast %x {dtype=bf16}
  %2 = linear %1, %w
  output "y" %2
})",
    R"(graph @small(input %x: bf16[64, 512], input %w: bf16[512, 64]) {
  %1 = matmul %x, %w
  output "y" %1
})",
    R"(graph @nothing(input %x: bf16[m, 0], input %w: bf16[0, 256]) {
  %1 = matmul %x, %w
  output "y" %1
})",
    R"(graph @single(input %x: f32[m, 256], input %w: f32[256, 256]) {
  %1 = matmul %x, %w
  output "y" %1
})"};

ir::Graph graph_of(std::string_view text) { return ir::parse_graph(std::string(text), "product"); }

/// Changes the kernel to that for a machine with one multiprocessor, which processes all tiles in sequence.
kernel::Kernel by_one_block(kernel::Kernel k) {
  int found = 0;
  for (kernel::Instruction& in : k.values)
    if (in.op == kernel::Opcode::constant && in.integer == 132) in.integer = 1, ++found;
  REQUIRE(found == 1);
  return k;
}

}  // namespace

TEST_CASE("products by warpgroups: both axes of both operands, ragged edges, epilogues, splits") {
  std::vector<ProgramInterpreter> programs;
  std::vector<kernel::Kernel> kernels;
  for (const Case& c : cases) {
    programs.emplace_back(graph_of(c.text), lower_gpu_sm_90a);
    const auto& own = programs.back().program().kernels;
    INFO(c.what);
    REQUIRE(own.size() == c.kernels);
    const std::string text = cuda::emit(own[0], gpu_info("sm_90a"));
    CHECK(text.find("StagePipeline<" + std::to_string(c.stages) + "> pipeline") != text.npos);
    CHECK(cuda::mapping_of(own[0], gpu_info("sm_90a")).block_size() == c.threads);
    CHECK(cuda::mapping_of(own[0], gpu_info("sm_90a")).shared_bytes <= 227 * 1024);
    kernels.insert(kernels.end(), own.begin(), own.end());
  }
  kernels.push_back(by_one_block(kernels[0]));
  const auto host = HostCuda::build(kernels);
  for (std::size_t i = 0; i < std::size(cases); ++i) {
    INFO(cases[i].what);
    const ir::Graph graph = graph_of(cases[i].text);
    const Tensors arguments = test::random_arguments(graph, {{"m", 131}, {"k", 333}, {"s", 10}});
    const Tensors expected = ir::interpret(graph, arguments);
    Tensors found, by_text;
    if (cases[i].interprets) found = programs[i].run(arguments);
    if (host)
      by_text = programs[i].run(arguments, [&](const auto& kernel, auto buffers, auto dims) {
        return host->run(kernel, buffers, dims, 1);
      });
    for (const Tensors* y : {&found, &by_text})
      if (!y->empty()) CHECK(test::error_of(y->at("y"), expected.at("y")) <= 8e-3);
    if (!found.empty() && host) CHECK(test::same_bits(by_text.at("y"), found.at("y")));
    if (i != 0 || !host) continue;
    const Tensors none = test::random_arguments(graph, {{"m", 0}});
    CHECK(programs[0].run(none).at("y").numel() == 0);
    CHECK(programs[0]
              .run(none, [&](const auto& k, auto buffers, auto dims) { return host->run(k, buffers, dims, 1); })
              .at("y")
              .numel() == 0);
    const Tensors in_turn = programs[0].run(
        arguments, [&](const auto&, auto buffers, auto dims) { return host->run(kernels.back(), buffers, dims, 2); });
    CHECK(test::same_bits(in_turn.at("y"), found.at("y")));
  }
}

TEST_CASE("races: none when a warpgroup runs the epilogue of one tile during the products of the next") {
  const Case& c = cases[1];
  const ProgramInterpreter program(graph_of(c.text), lower_gpu_sm_90a);
  const kernel::Kernel kernel = by_one_block(program.program().kernels[0]);
  auto cuda = test::RacingCuda::build({&kernel, 1});
  if (!cuda) return;
  const Tensors arguments = test::random_arguments(graph_of(c.text), {{"m", 300}});
  const Tensors found =
      program.run(arguments, [&](const auto&, auto buffers, auto dims) { return cuda->run(kernel, buffers, dims); });
  CHECK(test::error_of(found.at("y"), ir::interpret(graph_of(c.text), arguments).at("y")) <= 8e-3);
}

TEST_CASE("matmuls that do not suit warpgroups use the path of all GPUs") {
  for (const std::string_view text : others) {
    INFO(text);
    const auto kernels = [&](const auto& lower) {
      return ProgramInterpreter(graph_of(text), lower).program().kernels;
    };
    CHECK(kernel::canonical_text(kernels(lower_gpu_sm_90a)[0]) == kernel::canonical_text(kernels(lower_gpu)[0]));
  }
  for (const Case& c : cases) {
    const ProgramInterpreter program(graph_of(c.text), lower_gpu);
    for (const auto& k : program.program().kernels)
      CHECK(cuda::emit(k, gpu_info("sm_90a")).find("StagePipeline<") == std::string::npos);
  }
  CHECK(gpu_info("sm_90a").wgmma);
  for (const char* other : {"sm_80", "sm_90", "sm_100a"}) CHECK_FALSE(gpu_info(other).wgmma);
}

TEST_CASE("matmuls by warpgroups compile to wgmma without spills, within register limits") {
  const auto nvrtc = test::local_nvrtc();
  if (!nvrtc) return;
  std::vector<kernel::Kernel> kernels;
  for (const Case& c : cases)
    kernels.push_back(ProgramInterpreter(graph_of(c.text), lower_gpu_sm_90a).program().kernels[0]);
  const cuda::Arch hopper = cuda::Arch::named("sm_90a");
  const auto ptx = cuda::compile_kernels(*nvrtc, kernels, hopper, cuda::Output::ptx, nullptr);
  for (std::size_t i = 0; i < ptx.size(); ++i)
    CHECK((ptx[i].code.find("cp.async.mbarrier.arrive.noinc") != std::string::npos) == (cases[i].threads == 384));
  for (const auto& k : ptx) {
    INFO(k.symbol);
    for (const char* part : {"wgmma.mma_async.sync.aligned.m64n128k16", "wgmma.wait_group.sync.aligned 1;",
                             "mbarrier.try_wait.parity", "mbarrier.expect_tx", "cp.async.bulk.tensor."})
      CHECK(k.code.find(part) != std::string::npos);
    CHECK(k.code.find("mma.sync") == std::string::npos);
  }
  for (const auto& k : cuda::compile_kernels(*nvrtc, kernels, hopper, cuda::Output::cubin, nullptr)) {
    INFO(k.symbol << ": " << k.resources.to_string());
    CHECK(k.resources.spill_bytes == 0);
    CHECK(k.resources.stack_bytes == 0);
    CHECK_FALSE(k.resources.serialized_wgmma);
    CHECK(k.resources.registers <= 168);  // of 384 threads
  }
}
