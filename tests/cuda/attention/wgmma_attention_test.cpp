#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "codegen/cuda/mapping.h"
#include "tests/cuda/attention/attention_cases.h"
#include "tests/cuda/attention/forward_attention.h"
#include "tests/cuda/attention/wgmma_cases.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/tensors/compare_tensors.h"

/// Attention by the warpgroups of sm_90a.
using namespace lathe;
using namespace lathe::test;

namespace {

const WgmmaCase cases[] = {
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

ir::Graph graph_of(const WgmmaCase& c) { return forward_attention(c.variant, c.depth, c.values); }

}  // namespace

TEST_CASE("attention by warpgroups: masks, layouts, head sizes, ragged tiles, few rows, in the kernel interpreter") {
  const auto make = [](const auto& variant, auto depth, auto values) {
    return forward_attention(variant, depth, values);
  };
  check_cases(cases, make, rows_by_wgmma);
  check_cases(cases, make, rows_in_turns, fused_in_turns);
}

TEST_CASE("attention by warpgroups: rising maxima, masks by -1e9 and -inf, infinities and NaN") {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  constexpr std::int64_t rows = 9, columns = 300, head = 16;  // in tiles of 64 or, in turns, of 128
  const ir::Graph graphs[] = {masked_attention(bf16, -1e9), masked_attention(bf16, -infinity)};
  std::vector<ProgramInterpreter> programs;
  for (const ir::Graph& graph : graphs)
    for (const auto lower : {fused_by_wgmma, fused_in_turns}) programs.push_back(lower(graph));
  std::vector<kernel::Kernel> kernels;
  for (const ProgramInterpreter& program : programs) kernels.push_back(*rows_by_wgmma(program));
  for (const std::size_t i : {0, 1, 2, 3}) {
    const auto host = HostCuda::build({&kernels[i], 1});
    if (!host) return;
    const ir::Graph& graph = graphs[i / 2];
    Tensors arguments = random_arguments(graph, {{"N", 1}, {"S", rows}, {"T", columns}});
    // By row: all columns; none; the last; the first; from 128 on; the first 128; every second 128.
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
          Tensors given = arguments;
          for (std::int64_t at = 0; at < columns * head; ++at)
            given.at("k").set(at, slope * static_cast<double>(at / head / 8 + at % 2));
          if (special != 0) given.at(where).set(140 * head, special);
          const Tensors found = programs[i].run(
              given, [&](const auto& k, auto buffers, auto dims) { return host->run(k, buffers, dims, 3); });
          for (const auto& [name, value] : ir::interpret(graph, given))
            CHECK(error_of(found.at(name), value) <= 1.6e-2);
        }
  }
}

TEST_CASE("attention by warpgroups: maxima on both sides of the limit up to which they are multiplied by log2 e") {
  constexpr std::int64_t rows = 9, columns = 300, head = 16;
  const ir::Graph graph = masked_attention(bf16, -1e9);
  for (const auto lower : {fused_by_wgmma, fused_in_turns}) {
    const ProgramInterpreter program = lower(graph);
    Tensors arguments = random_arguments(graph, {{"N", 1}, {"S", rows}, {"T", columns}});
    for (std::int64_t at = 0; at < rows * columns; ++at) arguments.at("mask").set(at, at / columns != 3);
    // Scores grow from column to column, up to several hundred, with the sign of the sum of the row's query.
    for (std::int64_t at = 0; at < columns * head; ++at)
      arguments.at("k").set(at, 4.0 * static_cast<double>(at / head / 8 + at % 2));
    const Tensors found = program.run(arguments);
    double largest = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
      double sum = 0;
      for (std::int64_t i = 0; i < head; ++i) sum += arguments.at("q").get(row * head + i);
      largest = std::max(largest, std::abs(sum) * 4 * (columns / 8));
    }
    CHECK(largest > 512);
    for (const auto& [name, value] : ir::interpret(graph, arguments, {.round = false}))
      CHECK(error_of(found.at(name).cast(f64), value.cast(f64)) <= 1.6e-2);
  }
}

TEST_CASE("attention by warpgroups: columns are skipped if that does not change the result, otherwise visited") {
  for (const auto lower : {fused_by_wgmma, fused_in_turns}) {
    const ir::Graph graph = forward_attention(causal_and_padded, 16, 16);
    const ProgramInterpreter program = lower(graph);
    REQUIRE(rows_by_wgmma(program));
    // Rows that see no column weight all columns, including those beyond the diagonal: all rows; only some of them.
    check_left_out(graph, program, {0, 300, 140}, {"k", "v"});
  }
}

TEST_CASE("attention that does not suit warpgroups uses the path of all GPUs") {
  for (const AttentionCase& c : attention_cases()) {
    INFO(c.name);
    CHECK_FALSE(rows_by_wgmma(fused_by_wgmma(c.graph)));  // rows of 8 bytes, forward and backward in one kernel, f32
  }
  CHECK_FALSE(
      rows_by_wgmma(ProgramInterpreter(graph_of(cases[0]), lower_gpu, {.attention = AttentionFusion::required})));
  CHECK_FALSE(rows_by_wgmma(fused_by_wgmma(forward_attention({.types = Types::bf16}, 264, 16))));
  CHECK_FALSE(rows_by_wgmma(fused_by_wgmma(forward_attention({.types = Types::bf16}, 12, 16))));
  CHECK_FALSE(
      rows_by_wgmma(fused_by_wgmma(forward_attention({.scale = Scale::on_keys, .types = Types::bf16}, 16, 16))));
}

TEST_CASE("attention takes turns if rows are known to be long, and there are blocks for all multiprocessors") {
  const auto in_turns = [](Mask mask, const DimBindings& known) {
    return rows_in_turns(fused_by_wgmma(forward_attention({.mask = mask, .types = Types::bf16}, 64, 64, known)));
  };
  CHECK_FALSE(in_turns(Mask::none, {}));
  CHECK(in_turns(Mask::none, {{"N", 8}, {"S", 2048}}));
  CHECK(in_turns(Mask::none, {{"S", 2048}}));
  CHECK_FALSE(in_turns(Mask::none, {{"N", 8}, {"S", 2047}}));
  CHECK_FALSE(in_turns(Mask::none, {{"N", 1}, {"S", 2048}}));  // 22 blocks
  CHECK_FALSE(in_turns(Mask::causal_fill, {{"N", 8}, {"S", 2048}}));
  CHECK(in_turns(Mask::causal_fill, {{"N", 8}, {"S", 4096}}));
  // Heads of 64: three warpgroups; wider ones: two, those of 256 with tiles of 64 columns.
  const auto threads = [](std::int64_t depth) {
    return cuda::mapping_of(*rows_in_turns(fused_in_turns(forward_attention({.types = Types::bf16}, depth, depth))),
                            gpu_info("sm_90a"))
        .block_size();
  };
  CHECK(threads(64) == 512);
  CHECK(threads(128) == 384);
  CHECK(threads(256) == 384);
}

TEST_CASE("attention by warpgroups compiles to wgmma without spills, within the register limit") {
  std::vector<kernel::Kernel> kernels;
  for (const auto lower : {fused_by_wgmma, fused_in_turns})
    for (const auto& [depth, values] : {std::pair{64, 64}, {128, 128}, {256, 256}})
      for (const Mask mask : {Mask::none, Mask::causal_fill})
        kernels.push_back(*rows_by_wgmma(
            lower(forward_attention({.layout = Layout::split, .mask = mask, .types = Types::bf16}, depth, values))));
  check_resources(kernels);
}

TEST_CASE("attention by warpgroups compiles without spills with every mask, bias and dropout") {
  std::vector<kernel::Kernel> kernels;
  for (const auto lower : {fused_by_wgmma, fused_in_turns})
    for (const WgmmaCase& c : cases) {
      const std::int64_t depth = std::max<std::int64_t>(c.depth, 64);
      kernels.push_back(*rows_by_wgmma(lower(forward_attention(c.variant, depth, depth))));
    }
  check_resources(kernels);
}
