#include <fmt/core.h>
#include <catch2/catch.hpp>

#include <functional>
#include <string>

#include "ir/kernel/printer.h"
#include "passes/compile/compilation.h"
#include "passes/machines/cpu_machine.h"
#include "passes/machines/gpu_machine.h"
#include "passes/pipeline/pipeline.h"
#include "tests/passes/support.h"

/// Kernels follow the tuned sizes: changing a size changes the kernels, and they still pass the verifier.
using namespace lathe;
using cpu::CpuSizes;
using gpu::GpuSizes;

namespace {

std::string kernels_of(const std::string& text, const Machine& machine) {
  Compilation now = begin_compilation(ir::test::parse(text), machine);
  run_through(now, Stage::Part::target);
  now.request.lower.attention = AttentionFusion::required;
  run_until(now, "collectives");
  std::string found;
  for (const kernel::Kernel& kernel : now.program.kernels) found += kernel::canonical_text(kernel);
  return found;
}

std::string product(const std::string& dtype, std::int64_t m, std::int64_t n, std::int64_t k) {
  return fmt::format(
      "graph @g(input %x: {0}[{1}, {3}], input %y: {0}[{3}, {2}]) {{\n  %1 = matmul %x, %y\n  output \"a\" %1\n}}",
      dtype, m, n, k);
}

/// Attention of `heads` independent heads: rows that attend to columns, of one depth.
std::string attention(const std::string& dtype, std::int64_t heads, std::int64_t rows, std::int64_t columns,
                      std::int64_t depth) {
  return fmt::format(
      R"(graph @g(input %q: {0}[{1}, {2}, {4}], input %k: {0}[{1}, {3}, {4}], input %v: {0}[{1}, {3}, {4}]) {{
  %1 = transpose %k {{dim0=1, dim1=2}}
  %2 = matmul %q, %1
  %3 = softmax %2 {{dim=2}}
  %4 = matmul %3, %v
  output "a" %4
}})",
      dtype, heads, rows, columns, depth);
}

template <class Sizes>
using Change = std::function<void(Sizes&)>;

void follows(const std::string& graph, const CpuInfo& cpu, const std::string& size, const Change<CpuSizes>& change) {
  INFO(size);
  CpuSizes sizes = cpu::cpu_sizes(cpu);
  change(sizes);
  CHECK(kernels_of(graph, cpu_machine(cpu, sizes)) != kernels_of(graph, cpu_machine(cpu)));
}

void follows(const std::string& graph, const GpuInfo& gpu, const std::string& size, const Change<GpuSizes>& change) {
  INFO(size);
  GpuSizes sizes;
  change(sizes);
  CHECK(kernels_of(graph, gpu_machine(gpu, sizes)) != kernels_of(graph, gpu_machine(gpu)));
}

}  // namespace

TEST_CASE("machines: CPU attention follows its block sizes") {
  const CpuInfo plain = *find_cpu_info("x86-64-v4"), amx = *find_cpu_info("sapphirerapids"),
                pairs = *find_cpu_info("znver4");
  const std::string few = attention("f32", 2, 8, 1000, 256), many = attention("f32", 2, 512, 512, 64),
                    bf16 = attention("bf16", 8, 4096, 1024, 64);
  follows(few, plain, "decode_rows", [](CpuSizes& sizes) { sizes.attention.decode_rows = 7; });
  follows(few, plain, "part_columns", [](CpuSizes& sizes) { sizes.attention.part_columns = 32; });
  follows(few, plain, "decode_columns", [](CpuSizes& sizes) { sizes.attention.decode_columns = 32; });
  follows(many, plain, "row_blocks", [](CpuSizes& sizes) { sizes.attention.row_blocks = 2; });
  follows(many, plain, "summed_columns", [](CpuSizes& sizes) { sizes.attention.summed_columns = 256; });
  follows(many, plain, "wide_tile_registers", [](CpuSizes& sizes) { sizes.products.fma.wide_tile_registers = 64; });
  follows(bf16, pairs, "summed_columns", [](CpuSizes& sizes) { sizes.attention.summed_columns = 256; });
  follows(bf16, amx, "tiled_row_blocks", [](CpuSizes& sizes) { sizes.attention.tiled_row_blocks = 8; });
  follows(bf16, amx, "packed_columns", [](CpuSizes& sizes) { sizes.attention.packed_columns = 64; });
}

TEST_CASE("machines: packing for CPU matmuls follows its sizes") {
  const CpuInfo plain = *find_cpu_info("x86-64-v4"), amx = *find_cpu_info("sapphirerapids");
  const std::string large = product("f32", 1024, 1024, 1024);
  follows(large, plain, "rows", [](CpuSizes& sizes) { sizes.products.packing.rows = 768; });
  follows(large, plain, "steps", [](CpuSizes& sizes) { sizes.products.packing.steps = 8; });
  follows(large, amx, "tiled_depth", [](CpuSizes& sizes) { sizes.products.packing.tiled_depth = 256; });
}

TEST_CASE("machines: CPU vector loops follow their sizes") {
  const CpuInfo plain = *find_cpu_info("x86-64-v4");
  const auto of = [](std::string_view arguments, std::string_view op) {
    return fmt::format("graph @g({}) {{\n  %1 = {}\n  output \"y\" %1\n}}", arguments, op);
  };
  const std::string x = "input %x: f32[1000, 500]", at = "input %i: i64[1000], ";
  follows(of(x, "sum %x {dims=[1]}"), plain, "chains", [](CpuSizes& sizes) { sizes.loops.chains = 2; });
  follows(of("input %x: f32[1000, 50000]", "sum %x {dims=[0]}"), plain, "column_vectors",
          [](CpuSizes& sizes) { sizes.loops.column_vectors = 2; });
  follows(of(x, "sum %x {dims=[0]}"), plain, "summed_rows", [](CpuSizes& sizes) { sizes.loops.summed_rows = 2; });
  follows(of(x, "cumsum %x {dim=0}"), plain, "scan_task_vectors",
          [](CpuSizes& sizes) { sizes.loops.scan_task_vectors = 4; });
  const std::string scatter = of(at + x, "scatter_add %i, %x {size=300, dim=0}"),
                    update =
                        of("input %z: f32[300, 500], input %i: i64[1000], " + x, "update_rows %z, %i, %x {dim=0}");
  follows(scatter, plain, "scatter_vectors", [](CpuSizes& sizes) { sizes.loops.scatter_vectors = 2; });
  follows(scatter, plain, "scatter_task_vectors", [](CpuSizes& sizes) { sizes.loops.scatter_task_vectors = 8; });
  follows(scatter, plain, "scattered_rows_ahead", [](CpuSizes& sizes) { sizes.loops.scattered_rows_ahead = 2; });
  follows(update, plain, "update_task_vectors", [](CpuSizes& sizes) { sizes.loops.update_task_vectors = 8; });
}

TEST_CASE("machines: GPU matmuls and attention follow their sizes") {
  const GpuInfo sm80 = gpu_info("sm_80"), sm90 = gpu_info("sm_90a");
  const std::string f32 = product("f32", 512, 512, 512), bf16 = product("bf16", 4096, 4096, 4096),
                    scores = attention("bf16", 8, 1024, 1024, 64);
  follows(f32, sm80, "plain_side", [](GpuSizes& sizes) { sizes.products.plain_side = 8; });
  follows(f32, sm80, "plain_depth", [](GpuSizes& sizes) { sizes.products.plain_depth = 8; });
  follows(bf16, sm80, "mma_depth", [](GpuSizes& sizes) { sizes.products.mma_depth = 16; });
  follows(bf16, sm80, "mma_stages", [](GpuSizes& sizes) { sizes.products.mma_stages = 3; });
  follows(bf16, sm90, "wgmma_stages", [](GpuSizes& sizes) { sizes.products.wgmma_stages = 2; });
  follows(scores, sm90, "attention_stages", [](GpuSizes& sizes) { sizes.attention.most = 2; });
  follows(attention("bf16", 8, 1024, 1024, 16), sm80, "attention_steps",
          [](GpuSizes& sizes) { sizes.attention.steps = 32; });
  follows(attention("bf16", 64, 1024, 1024, 64), sm90, "turn_columns",
          [](GpuSizes& sizes) { sizes.attention.turn_columns = 1024; });
  follows(scores, sm90, "least_attention_stages", [](GpuSizes& sizes) { sizes.attention.least = 5; });
  const std::string rounded = R"(graph @g(input %x: bf16[200, 768], parameter %w: f32[768, 768]) {
  %1 = cast %w {dtype=bf16}
  %2 = contract %x, %1 {spec="ac,bc->ab"}
  output "y" %2
})",
                    odd =
                        R"(graph @g(input %g: bf16[512, 300], input %x: bf16[512, 64], parameter %w: bf16[300, 64]) {
  %1 = contract %g, %w {spec="av,vd->ad"}
  output "y" %1
})",
                    norm = R"(graph @g(input %x: f32[100000000]) {
  %1 = sum %x {dims=[0]}
  output "y" %1
})";
  follows(rounded, sm80, "copied_rows", [](GpuSizes& sizes) { sizes.products.copied_rows = 200; });
  follows(odd, sm80, "unpadded_depth", [](GpuSizes& sizes) { sizes.padding.unpadded_depth = 300; });
  follows(odd, sm80, "padded_rows", [](GpuSizes& sizes) { sizes.padding.padded_rows = 65; });
  follows(norm, sm80, "most_splits", [](GpuSizes& sizes) { sizes.reductions.most_splits = 4; });
  const std::string scatter = R"(graph @g(input %x: f32[n, 8], input %i: i64[n]) {
  %1 = scatter_add %i, %x {size=300, dim=0}
  output "y" %1
})";
  follows(scatter, sm80, "sorted_positions", [](GpuSizes& sizes) { sizes.reductions.sorted_positions = 1024; });
  const std::string rows = R"(graph @g(input %x: f32[n, 13000]) {
  %1 = softmax %x {dim=1}
  output "y" %1
})";
  follows(rows, sm80, "least_kept_bytes", [](GpuSizes& sizes) { sizes.reductions.least_kept_bytes = 64 << 10; });
}
