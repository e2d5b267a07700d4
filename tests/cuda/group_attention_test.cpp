#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/mapping.h"
#include "ir/kernel/printer.h"
#include "ir/kernel/structure_rules.h"
#include "passes/gpu/lower_gpu.h"
#include "runtime/cuda/kernel_cache.h"
#include "tests/cuda/attention_cases.h"
#include "tests/cuda/forward_attention.h"
#include "tests/cuda/host_cuda.h"
#include "tests/cuda/local_nvrtc.h"
#include "tests/support/compare.h"
#include "tests/support/program_interpreter.h"

/// Attention by the warp groups of sm_90a.
using namespace lathe;
using namespace lathe::test;

namespace {

ProgramInterpreter fused(const ir::Graph& graph) {
  return ProgramInterpreter(graph, lower_gpu_sm_90a, {.attention = AttentionFusion::required});
}
ProgramInterpreter plain(const ir::Graph& graph) {
  return ProgramInterpreter(graph, lower_gpu, {.attention = AttentionFusion::off});
}

/// The kernel that runs an attention by warp groups, or null.
const kernel::Kernel* by_groups(const ProgramInterpreter& program) {
  const auto& kernels = program.program().kernels;
  const auto found = std::find_if(kernels.begin(), kernels.end(), [](const kernel::Kernel& k) {
    return k.name.find("attention_by_groups") != std::string::npos;
  });
  return found == kernels.end() ? nullptr : &*found;
}

/// The error is at most twice that of the products and softmax one by one, in the same dtype.
void check_values(const ir::Graph& graph, const ir::Tensors& arguments, const ProgramInterpreter& program,
                  const ProgramInterpreter::RunKernel& run = {}) {
  const auto widened = [](const HostTensor& t) { return t.cast(f64); };
  const ir::Tensors found = run ? program.run(arguments, run) : program.run(arguments);
  const ir::Tensors by_parts = plain(graph).run(arguments);
  for (const auto& [name, value] : ir::interpret(graph, arguments, {.round = false})) {
    INFO(name);
    if (!is_float(value.dtype())) continue;
    const HostTensor exact = widened(value);
    CHECK(error_of(widened(found.at(name)), exact) <= 2 * error_of(widened(by_parts.at(name)), exact) + 2e-6);
  }
}

struct Case {
  const char* what;
  Spelling spelling;
  std::int64_t depth = 16, values = 16, length = 150;
};

const Case cases[] = {
    {"causal by -1e9, heads side by side",
     {.layout = Layout::split, .mask = Mask::causal_fill, .types = Types::bf16}},
    {"padding, across, wider values",
     {.mask = Mask::padding_bool, .extra = Extra::cross, .types = Types::f16},
     80,
     96,
     70},
    {"causal and padding, both by -1e9", {.mask = Mask::both_and, .types = Types::bf16}, 8, 24},
    {"window, grouped heads", {.layout = Layout::grouped_expand, .mask = Mask::window, .types = Types::f16}, 64, 64},
    {"soft cap, causal by -inf, rows outside",
     {.layout = Layout::rows_outside, .mask = Mask::soft_cap_causal, .types = Types::bf16},
     24,
     40},
    {"ALiBi, dropout, one head of keys",
     {.layout = Layout::one_key_head, .mask = Mask::alibi, .extra = Extra::dropout, .types = Types::bf16}},
    {"a shared bias, queries scaled on the way, softmax in f32",
     {.scale = Scale::on_queries, .mask = Mask::bias_shared, .types = Types::f32_softmax},
     32,
     136,
     70},
    {"wide heads, no mask", {.layout = Layout::length_first, .types = Types::f16}, 136, 200, 66},
};

ir::Graph graph_of(const Case& c) { return forward_attention(c.spelling, c.depth, c.values); }

}  // namespace

TEST_CASE("attention by warp groups: masks, layouts, sizes of heads, ragged tiles, by the kernel interpreter") {
  for (const Case& c : cases) {
    INFO(c.what);
    const ir::Graph graph = graph_of(c);
    const ProgramInterpreter program = fused(graph);
    const kernel::Kernel* const kernel = by_groups(program);
    REQUIRE(kernel);
    CHECK(cuda::mapping_of(*kernel).block_size() == 384);
    CHECK(cuda::mapping_of(*kernel).shared_bytes <= 227 * 1024);
    check_values(graph, random_arguments(graph, {{"N", 1}, {"S", c.length}, {"T", 131}}), program);
  }
}

TEST_CASE("attention by warp groups: of one row, of none, over no columns") {
  const ir::Graph graph =
      forward_attention({.mask = Mask::padding_bool, .extra = Extra::cross, .types = Types::f16}, 16, 16);
  const ProgramInterpreter program = fused(graph);
  for (const DimBindings& dims :
       {DimBindings{{"N", 1}, {"S", 1}, {"T", 1}}, DimBindings{{"N", 1}, {"S", 2}, {"T", 0}},
        DimBindings{{"N", 1}, {"S", 0}, {"T", 3}}})
    check_values(graph, random_arguments(graph, dims), program);
}

TEST_CASE("attention by warp groups: maxima that rise, masks by -1e9 and -inf, infinities and NaN") {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  constexpr std::int64_t rows = 9, columns = 300, head = 16;  // in tiles of 64
  const ir::Graph graphs[] = {masked_attention(bf16, -1e9), masked_attention(bf16, -infinity)};
  const ProgramInterpreter programs[] = {fused(graphs[0]), fused(graphs[1])};
  const kernel::Kernel kernels[] = {*by_groups(programs[0]), *by_groups(programs[1])};
  const auto host = HostCuda::build(kernels);
  if (!host) return;
  for (const std::size_t i : {0, 1}) {
    ir::Tensors arguments = random_arguments(graphs[i], {{"N", 1}, {"S", rows}, {"T", columns}});
    // By row: all columns; none; the last; the first; from the third tile on; the first two tiles; two of every four.
    for (std::int64_t at = 0; at < rows * columns; ++at) {
      const std::int64_t row = at / columns, column = at % columns;
      const bool seen[] = {true,          false,        column == columns - 1, column == 0,
                           column >= 128, column < 128, column / 128 % 2 == 0};
      arguments.at("mask").set(at, row >= 7 || seen[row]);
    }
    for (const double slope : {0.0625, -0.0625})
      for (const double special : {0.0, infinity, -infinity, nan})
        for (const char* where : {"k", "v"}) {
          INFO(i << ", slope " << slope << ", " << special << " in " << where);
          ir::Tensors given = arguments;
          for (std::int64_t at = 0; at < columns * head; ++at)
            given.at("k").set(at, slope * static_cast<double>(at / head / 8 + at % 2));
          if (special != 0) given.at(where).set(140 * head, special);
          const ir::Tensors found = programs[i].run(
              given, [&](const auto& k, auto buffers, auto dims) { return host->run(k, buffers, dims, 3); });
          for (const auto& [name, value] : ir::interpret(graphs[i], given))
            CHECK(error_of(found.at(name), value) <= 1.6e-2);
        }
  }
}

TEST_CASE("attention by warp groups: columns are left out where that changes nothing, else gone through after all") {
  constexpr std::int64_t length = 300, head = 16;
  const ir::Graph graph =
      forward_attention({.layout = Layout::flat, .mask = Mask::both_and, .types = Types::bf16}, head, head);
  const ProgramInterpreter program = fused(graph);
  REQUIRE(by_groups(program));
  const auto host = HostCuda::build(program.program().kernels);
  if (!host) return;
  const auto run = [&](const auto& k, auto buffers, auto dims) { return host->run(k, buffers, dims, 4); };
  ir::Tensors arguments = random_arguments(graph, {{"N", 1}, {"S", length}});
  std::string mask;
  for (const auto& [name, value] : arguments)
    if (value.dtype() == boolean) mask = name;
  REQUIRE(!mask.empty());
  // Rows that see no column weigh all of them, beyond the diagonal too: all rows; those of the second strip alone.
  for (const std::int64_t padded : {std::int64_t{0}, length, std::int64_t{140}}) {
    INFO(padded);
    for (std::int64_t i = 0; i < length; ++i) arguments.at(mask).set(i, i >= padded);
    check_values(graph, arguments, program, run);
  }
  for (const double poison :
       {1e20, -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    for (const char* where : {"k", "v"}) {
      INFO(poison << " in " << where);
      ir::Tensors given = arguments;
      given.at(where).set(length * head - 1, poison);
      const ir::Tensors found = program.run(given, run);
      for (const auto& [name, value] : ir::interpret(graph, given)) CHECK(error_of(found.at(name), value) <= 1.6e-2);
    }
}

TEST_CASE("attentions that warp groups do not suit take the path of all GPUs") {
  for (const AttentionCase& c : attention_cases()) {
    INFO(c.name);
    CHECK_FALSE(by_groups(fused(c.graph)));  // lines of 8 bytes, forward and backward in one, f32
  }
  CHECK_FALSE(by_groups(ProgramInterpreter(graph_of(cases[0]), lower_gpu, {.attention = AttentionFusion::required})));
  CHECK_FALSE(by_groups(fused(forward_attention({.types = Types::bf16}, 264, 16))));
  CHECK_FALSE(by_groups(fused(forward_attention({.types = Types::bf16}, 12, 16))));
  CHECK_FALSE(by_groups(fused(forward_attention({.scale = Scale::on_keys, .types = Types::bf16}, 16, 16))));
}

TEST_CASE("attention by warp groups compiles to wgmma without spills, under a ceiling of registers") {
  std::vector<kernel::Kernel> kernels;
  for (const auto& [depth, values] : {std::pair{64, 64}, {128, 128}, {256, 256}})
    for (const Mask mask : {Mask::none, Mask::causal_fill})
      kernels.push_back(*by_groups(
          fused(forward_attention({.layout = Layout::split, .mask = mask, .types = Types::bf16}, depth, values))));
  const auto nvrtc = local_nvrtc();
  if (!nvrtc) return;
  const cuda::Arch hopper = cuda::Arch::named("sm_90a");
  for (const auto& k : cuda::compile_kernels(*nvrtc, {kernels.data(), 1}, hopper, cuda::Output::ptx, nullptr)) {
    INFO(k.symbol);
    for (const char* part : {"wgmma.mma_async.sync.aligned.m64n", "cp.async.bulk.tensor.", "mbarrier.try_wait.parity",
                             "setmaxnreg.inc.sync.aligned.u32 240;", "setmaxnreg.dec.sync.aligned.u32 24;"})
      CHECK(k.code.find(part) != std::string::npos);
    for (const char* part : {"mma.sync", "cp.async.cg"}) CHECK(k.code.find(part) == std::string::npos);
  }
  for (const auto& k : cuda::compile_kernels(*nvrtc, kernels, hopper, cuda::Output::cubin, nullptr)) {
    INFO(k.symbol << ": " << k.resources.to_string());
    CHECK(k.resources.spill_bytes == 0);
    CHECK(k.resources.stack_bytes == 0);
    CHECK_FALSE(k.resources.serialized_wgmma);
    CHECK(k.resources.registers <= 168);  // of 384 threads, before they are shared out anew
  }
}
