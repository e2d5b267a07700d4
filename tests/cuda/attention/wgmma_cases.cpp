#include "tests/cuda/attention/wgmma_cases.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>

#include "codegen/cuda/mapping.h"
#include "tests/cuda/compile/local_nvrtc.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/support/programs/lower.h"
#include "tests/support/tensors/compare_tensors.h"

namespace lathe::test {

namespace {

const kernel::Kernel* named(const ProgramInterpreter& program, const char* name) {
  const auto& kernels = program.program().kernels;
  const auto found = std::find_if(kernels.begin(), kernels.end(),
                                  [&](const kernel::Kernel& k) { return k.name.find(name) != std::string::npos; });
  return found == kernels.end() ? nullptr : &*found;
}

}  // namespace

ProgramInterpreter fused_by_wgmma(const ir::Graph& graph) {
  return ProgramInterpreter(graph, lower_gpu_sm_90a, {.attention = AttentionFusion::required});
}

ProgramInterpreter fused_in_turns(const ir::Graph& graph) {
  const auto lower_in_turns = [](const ir::Graph& primitives, const LowerOptions& options) {
    return lower(primitives, gpu_machine(gpu_info("sm_90a"), {.attention = {.turn_columns = 0}}), options);
  };
  return ProgramInterpreter(graph, lower_in_turns, {.attention = AttentionFusion::required});
}

const kernel::Kernel* rows_by_wgmma(const ProgramInterpreter& program) {
  return named(program, "attention_by_wgmma");
}
const kernel::Kernel* rows_in_turns(const ProgramInterpreter& program) {
  return named(program, "attention_by_wgmma_in_turns");
}
const kernel::Kernel* outputs_of_rows_by_wgmma(const ProgramInterpreter& program) {
  return named(program, "attention_rows_by_wgmma");
}
const kernel::Kernel* columns_by_wgmma(const ProgramInterpreter& program) {
  return named(program, "attention_columns_by_wgmma");
}

const kernel::Kernel* gradients_by_wgmma(const ProgramInterpreter& program) {
  return named(program, "attention_gradients_by_wgmma");
}

void check_attention(const ir::Graph& graph, const Tensors& arguments, const ProgramInterpreter& program,
                     const ProgramInterpreter::RunKernel& run) {
  const ProgramInterpreter plain(graph, lower_gpu, {.attention = AttentionFusion::off});
  const auto widened = [](const HostTensor& t) { return t.cast(f64); };
  const Tensors found = run ? program.run(arguments, run) : program.run(arguments);
  const Tensors by_parts = plain.run(arguments);
  for (const auto& [name, value] : ir::interpret(graph, arguments, {.round = false})) {
    INFO(name);
    if (!is_float(value.dtype())) continue;
    const HostTensor exact = widened(value);
    CHECK(error_of(widened(found.at(name)), exact) <= 2 * error_of(widened(by_parts.at(name)), exact) + 2e-6);
  }
}

void check_cases(std::span<const WgmmaCase> cases, const MakeGraph& make,
                 const kernel::Kernel* (*kernel_of)(const ProgramInterpreter&),
                 ProgramInterpreter (*lower)(const ir::Graph&)) {
  const auto check = [&](const PatternVariant& variant, std::int64_t depth, std::int64_t values,
                         const std::vector<DimBindings>& sizes) {
    const ir::Graph graph = make(variant, depth, values);
    const ProgramInterpreter program = lower(graph);
    const kernel::Kernel* const kernel = kernel_of(program);
    REQUIRE(kernel);
    const cuda::Mapping mapping = cuda::mapping_of(*kernel, gpu_info("sm_90a"));
    CHECK((mapping.block_size() == 160) == (mapping.blocks_at_once > 1));
    CHECK((mapping.block_size() == 160 || mapping.block_size() == 384 || mapping.block_size() == 512));
    CHECK(mapping.blocks_at_once * (mapping.shared_bytes + 1024) <= 228 * 1024);
    for (const DimBindings& dims : sizes) check_attention(graph, random_arguments(graph, dims), program);
  };
  for (const WgmmaCase& c : cases) {
    INFO(c.what);
    check(c.variant, c.depth, c.values, {{{"N", 1}, {"S", c.length}, {"T", 131}}});
  }
  check({.mask = Mask::padding_bool, .extra = Extra::cross, .types = Types::f16}, 16, 16,
        {{{"N", 1}, {"S", 1}, {"T", 1}}, {{"N", 1}, {"S", 2}, {"T", 0}}, {{"N", 1}, {"S", 0}, {"T", 3}}});
}

void check_left_out(const ir::Graph& graph, const ProgramInterpreter& program,
                    const std::vector<std::int64_t>& padded, const std::vector<std::string>& inputs) {
  constexpr std::int64_t length = 300, head = 16;
  const auto host = HostCuda::build(program.program().kernels);
  if (!host) return;
  const auto run = [&](const auto& k, auto buffers, auto dims) { return host->run(k, buffers, dims, 4); };
  Tensors arguments = random_arguments(graph, {{"N", 1}, {"S", length}});
  const auto mask = std::find_if(arguments.begin(), arguments.end(),
                                 [](const auto& argument) { return argument.second.dtype() == boolean; });
  REQUIRE(mask != arguments.end());
  for (const std::int64_t masked : padded) {
    INFO(masked);
    for (std::int64_t i = 0; i < length; ++i) mask->second.set(i, i >= masked);
    check_attention(graph, arguments, program, run);
  }
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double poison : {1e20, -infinity, std::numeric_limits<double>::quiet_NaN()})
    for (const std::string& input : inputs) {
      INFO(poison << " in " << input);
      Tensors given = arguments;
      given.at(input).set(length * head - 1, poison);
      const Tensors found = program.run(given, run);
      for (const auto& [name, value] : ir::interpret(graph, given)) CHECK(error_of(found.at(name), value) <= 1.6e-2);
    }
}

void check_cuda_text(std::span<const WgmmaCase> cases, const MakeGraph& make, std::int64_t columns, int repeats) {
  std::vector<ir::Graph> graphs;
  std::vector<ProgramInterpreter> programs;
  std::vector<kernel::Kernel> kernels;
  for (const WgmmaCase& c : cases) {
    graphs.push_back(make(c.variant, c.depth, c.values));
    programs.push_back(fused_by_wgmma(graphs.back()));
    const auto& own = programs.back().program().kernels;
    kernels.insert(kernels.end(), own.begin(), own.end());
  }
  const auto host = HostCuda::build(kernels);
  if (!host) return;
  const auto by = [&](std::uint64_t seed) {
    return [&host, seed](const auto& k, auto buffers, auto dims) { return host->run(k, buffers, dims, seed); };
  };
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    INFO(cases[i].what);
    const Tensors arguments = random_arguments(graphs[i], {{"N", 1}, {"S", cases[i].length}, {"T", columns}});
    check_attention(graphs[i], arguments, programs[i], by(3));
    const Tensors once = programs[i].run(arguments, by(4));
    for (int repeat = 0; repeat < repeats; ++repeat) {
      const Tensors again = programs[i].run(arguments, by(static_cast<std::uint64_t>(5 + repeat)));
      for (const auto& [name, value] : once) CHECK(error_of(value, again.at(name)) == 0);
    }
  }
}

void check_resources(std::span<const kernel::Kernel> kernels) {
  const auto nvrtc = local_nvrtc();
  if (!nvrtc) return;
  const cuda::Arch hopper = cuda::Arch::named("sm_90a");
  for (const auto& k : cuda::compile_kernels(*nvrtc, kernels.first(1), hopper, cuda::Output::ptx, nullptr)) {
    INFO(k.symbol);
    for (const char* part :
         {"wgmma.mma_async.sync.aligned.m64n", "cp.async.bulk.tensor.", "mbarrier.try_wait.parity"})
      CHECK(k.code.find(part) != std::string::npos);
    const bool two = k.code.find(".maxntid 384") != std::string::npos,
               three = k.code.find(".maxntid 512") != std::string::npos;
    const auto has = [&](const char* part) { return k.code.find(part) != std::string::npos; };
    CHECK(has("setmaxnreg.inc.sync.aligned.u32 240;") == two);
    const bool adds_in_order = has("red.release.gpu");
    CHECK(has("setmaxnreg.inc.sync.aligned.u32 160;") == (three && !adds_in_order));
    CHECK(has("setmaxnreg.inc.sync.aligned.u32 224;") == adds_in_order);  // the first kernel has heads of 64
    CHECK(has("setmaxnreg.dec.sync.aligned.u32 24;") == (two || three));
    for (const char* part : {"mma.sync", "cp.async.cg"}) CHECK(k.code.find(part) == std::string::npos);
  }
  for (const auto& k : cuda::compile_kernels(*nvrtc, kernels, hopper, cuda::Output::cubin, nullptr)) {
    INFO(k.symbol << ": " << k.resources.to_string());
    CHECK(k.resources.spill_bytes == 0);
    CHECK(k.resources.stack_bytes == 0);
    CHECK_FALSE(k.resources.serialized_wgmma);
    CHECK(k.resources.registers <= 168);  // for 384 threads, before setmaxnreg redistributes them
  }
}

}  // namespace lathe::test
