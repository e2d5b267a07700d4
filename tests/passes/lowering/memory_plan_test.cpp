#include "passes/memory/memory_plan.h"

#include <catch2/catch.hpp>
#include <random>

#include "frontend/models/loss_graph.h"
#include "frontend/train/training.h"
#include "ir/tensor/text/parser.h"
#include "passes/memory/block_placement.h"
#include "passes/pipeline/pipeline.h"
#include "tests/support/programs/lower.h"

/// Placement of temporaries, and how much of the arena it wastes.
using namespace lathe;
using Catch::Matchers::Contains;

namespace {

Program lowered(const ir::Graph& graph) {
  return lower_cpu(ir::run_pipeline(graph, ir::default_pipeline()).graph, unnamed_cpu());
}

template <class Config>
ir::Graph step(const Config& config) {
  return training_step(models::loss_graph(config).graph, "loss", AdamW{.lr = 1e-3});
}

ir::Graph gpt_step() {
  return step(
      models::GptConfig{.vocab = Dim("vocab", 997), .d_model = Dim("d_model", 96), .h = Dim("h", 3), .layers = 3});
}

ir::Graph llama_step() {
  return step(models::LlamaConfig{.vocab = Dim("vocab", 997),
                                  .d_model = Dim("d_model", 96),
                                  .d_ff = Dim("d_ff", 264),
                                  .h = Dim("h", 4),
                                  .kv_heads = Dim("kv_heads", 2),
                                  .head_dim = Dim("head_dim", 24),
                                  .layers = 3});
}

void check_apart(const std::vector<MemoryPlan::Block>& blocks) {
  for (std::size_t i = 0; i < blocks.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const auto &a = blocks[i], &b = blocks[j];
      const bool together = a.first <= b.last && b.first <= a.last;
      const bool overlap = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      if (together && overlap) FAIL_CHECK(i << " and " << j << " overlap");
    }
}

/// Divides memory of `size` units into blocks at random: at each launch some blocks end and others replace them, so
/// that a plan of exactly that size exists.
std::vector<MemoryPlan::Block> cut_up(std::int64_t size, int launches, std::uint32_t seed) {
  std::minstd_rand random(seed);
  std::vector<MemoryPlan::Block> blocks;
  std::vector<std::size_t> live;  // by offset
  const auto fill = [&](std::int64_t from, std::int64_t to, int launch) {
    std::vector<std::size_t> made;
    while (from < to) {
      const std::int64_t bytes = std::min<std::int64_t>(to - from, 64 * (1 + random() % 40));
      made.push_back(blocks.size());
      blocks.push_back({.buffer = static_cast<int>(blocks.size()),
                        .offset = from,
                        .bytes = bytes,
                        .first = launch,
                        .last = launches - 1});
      from += bytes;
    }
    return made;
  };
  live = fill(0, size, 0);
  for (int launch = 1; launch < launches; ++launch) {
    const std::size_t first = random() % live.size(),
                      count = std::min<std::size_t>(1 + random() % 3, live.size() - first);
    const std::size_t end = first + count;
    const auto to = blocks[live[end - 1]].offset + blocks[live[end - 1]].bytes;
    const std::vector<std::size_t> made = fill(blocks[live[first]].offset, to, launch);
    for (std::size_t i = first; i < end; ++i) blocks[live[i]].last = launch - 1;
    const auto at = live.erase(live.begin() + static_cast<std::ptrdiff_t>(first),
                               live.begin() + static_cast<std::ptrdiff_t>(end));
    live.insert(at, made.begin(), made.end());
  }
  return blocks;
}

}  // namespace

TEST_CASE("placement: randomly cut blocks are packed again, deterministically") {
  const std::int64_t size = 64 * 1000;
  for (const std::uint32_t seed : {1, 2, 3, 4, 5, 6}) {
    std::vector<MemoryPlan::Block> blocks = cut_up(size, 40, seed);
    check_apart(blocks);
    const std::int64_t end = place_blocks(blocks, size);
    check_apart(blocks);
    INFO("seed " << seed << ": " << static_cast<double>(end) / size);
    CHECK(end >= size);
    CHECK(static_cast<double>(end) <= 1.15 * size);
    std::vector<MemoryPlan::Block> again = cut_up(size, 40, seed);
    CHECK(place_blocks(again, size) == end);
    for (std::size_t i = 0; i < blocks.size(); ++i) CHECK(again[i].offset == blocks[i].offset);
  }
  std::vector<MemoryPlan::Block> none;
  CHECK(place_blocks(none, 0) == 0);
}

TEST_CASE("memory plan: blocks live at the same time do not overlap, with at most 3% waste") {
  for (const Program& program : {lowered(gpt_step()), lowered(llama_step())})
    for (const std::int64_t batch : {1, 3, 4})
      for (const std::int64_t length : {1, 2, 3, 5, 7, 12, 17, 33, 64, 65, 200, 511}) {
        const MemoryPlan plan = plan_memory(program, {{"B", batch}, {"T", length}}, 2);
        INFO(program.name << " B=" << batch << " T=" << length);
        check_apart(plan.blocks);
        CHECK(plan.arena_bytes >= plan.lower_bound);
        CHECK(static_cast<double>(plan.arena_bytes) <= 1.03 * static_cast<double>(plan.lower_bound));
      }
}

TEST_CASE("memory plan: the scratch of two threads never shares a page") {
  const Program program = lowered(gpt_step());
  const DimBindings dims = {{"B", 2}, {"T", 64}};
  constexpr std::int64_t page = 4096;
  int seen = 0;
  for (const MemoryPlan::Block& block : plan_memory(program, dims, 3).blocks) {
    const ProgramBuffer& buffer = program.buffers[static_cast<std::size_t>(block.buffer)];
    const std::int64_t own = buffer_bytes(buffer, dims), stride = scratch_stride(buffer, dims);
    const bool scratch = buffer.kind == ProgramBuffer::Kind::scratch;
    CHECK(block.bytes == (scratch ? own + 2 * stride : own));
    for (int thread = 1; scratch && own > 0 && thread < 3; ++thread)
      CHECK((block.offset + (thread - 1) * stride + own - 1) / page < (block.offset + thread * stride) / page);
    seen += scratch ? 1 : 0;
  }
  CHECK(seen > 0);
  for (const MemoryPlan::Block& block : plan_memory(program, dims, 1).blocks)
    CHECK(block.bytes == buffer_bytes(program.buffers[static_cast<std::size_t>(block.buffer)], dims));
}

TEST_CASE("memory plan: describes the peak and the buffers live at it") {
  const Program program = lowered(ir::parse_graph(R"(graph @g(input %x: f32[64, 1024]) {
  %1 = exp %x
  %2 = contract %1, %1 {spec="ik,jk->ij"}
  %3 = contract %1, %1 {spec="ki,kj->ij"}
  output "a" %2
  output "b" %3
})",
                                                  "plan.lathe"));
  const MemoryPlan plan = plan_memory(program, {});
  const std::string text = describe(plan, program, 1);
  CHECK_THAT(text, Contains("memory: arena ") && Contains("(lower bound " + format_bytes(plan.lower_bound) + ")") &&
                       Contains("at the peak, in ") && Contains("plan.lathe:"));
  CHECK(plan.lower_bound > 0);
}

TEST_CASE("memory plan: a state updated by a matmul needs no second buffer") {
  const Program program = lowered(gpt_step());
  int copies = 0;
  for (const Launch& launch : program.launches) copies += launch.info.role == KernelRole::copy ? 1 : 0;
  CHECK(copies <= 3);  // the three of the position table, whose kernel sums over rows that it writes
}

TEST_CASE("memory plan: rejects overlapping blocks that are live at the same time") {
  MemoryPlan plan;
  plan.arena_bytes = 256;
  const auto with = [&](std::vector<MemoryPlan::Block> blocks) {
    plan.blocks = std::move(blocks);
    verify_plan(plan);
  };
  using Catch::Matchers::Contains;
  CHECK_NOTHROW(with({{0, 0, 128, 0, 3}, {1, 128, 128, 2, 5}, {2, 0, 128, 4, 4}, {3, 64, 0, 0, 9}}));
  CHECK_THROWS_WITH(
      with({{0, 0, 128, 0, 4}, {1, 128, 128, 2, 5}, {2, 0, 64, 4, 4}}),
      Contains("buffers 2 and 0 overlap in launch 4") || Contains("buffers 0 and 2 overlap in launch 4"));
  CHECK_THROWS_WITH(with({{0, 64, 64, 0, 4}, {1, 0, 128, 2, 5}}), Contains("buffers 1 and 0 overlap in launch 2"));
  CHECK_THROWS_WITH(with({{0, 64, 256, 0, 4}}), Contains("an arena of 256"));
}
