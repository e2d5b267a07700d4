#include "passes/memory/memory_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "ir/hardware/memory_units.h"
#include "ir/support/error.h"
#include "passes/memory/memory_planner.h"

namespace lathe {

namespace {

constexpr std::int64_t alignment = cache_line_bytes, page = page_bytes;

using Block = MemoryPlan::Block;

}  // namespace

std::int64_t aligned_bytes(DType dtype, std::int64_t elements) {
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(elements, static_cast<std::int64_t>(size_in_bytes(dtype)), &bytes) ||
      __builtin_add_overflow(bytes, alignment - 1, &bytes))
    throw UserError(fmt::format("the size {} * {} does not fit 64 bits", elements, size_in_bytes(dtype)),
                    "dim_overflow", "use smaller dims: no buffer of this size can exist");
  return bytes / alignment * alignment;
}

std::int64_t buffer_bytes(const ProgramBuffer& buffer, const DimBindings& dims) {
  return aligned_bytes(buffer.dtype, buffer.elements.evaluate(dims));
}

std::int64_t scratch_stride(std::int64_t bytes) { return bytes + page; }

std::int64_t scratch_stride(const ProgramBuffer& buffer, const DimBindings& dims) {
  return scratch_stride(buffer_bytes(buffer, dims));
}

MemoryPlan plan_memory(const Program& program, const DimBindings& dims, int threads) {
  std::vector<std::int64_t> elements;
  for (const ProgramBuffer& buffer : program.buffers) elements.push_back(buffer.elements.evaluate(dims));
  return MemoryPlanner(program, threads).plan(elements);
}

void verify_plan(const MemoryPlan& plan) {
  std::vector<const Block*> blocks;  // by first launch
  for (const Block& block : plan.blocks) {
    if (block.offset < 0 || block.bytes < 0 || block.offset + block.bytes > plan.arena_bytes)
      throw InternalError(fmt::format("memory plan: buffer {} at {} takes {} bytes of an arena of {}", block.buffer,
                                      block.offset, block.bytes, plan.arena_bytes));
    if (block.bytes > 0) blocks.push_back(&block);
  }
  std::stable_sort(blocks.begin(), blocks.end(), [](const Block* a, const Block* b) { return a->first < b->first; });
  std::map<std::int64_t, const Block*> live;  // by offset
  std::multimap<int, const Block*> ends;      // by last launch
  const auto overlap = [](const Block& below, const Block& above) {
    if (below.offset + below.bytes > above.offset)
      throw InternalError(fmt::format("memory plan: buffers {} and {} overlap in launch {}", below.buffer,
                                      above.buffer, std::max(below.first, above.first)));
  };
  for (const Block* block : blocks) {
    for (; !ends.empty() && ends.begin()->first < block->first; ends.erase(ends.begin()))
      live.erase(ends.begin()->second->offset);
    const auto above = live.lower_bound(block->offset);
    if (above != live.end()) overlap(*block, *above->second);
    if (above != live.begin()) overlap(*std::prev(above)->second, *block);
    live.emplace(block->offset, block);
    ends.emplace(block->last, block);
  }
}

std::string print_plan(const MemoryPlan& plan, const Program& program) {
  std::vector<MemoryPlan::Block> blocks = plan.blocks;
  std::ranges::stable_sort(blocks, {}, &MemoryPlan::Block::offset);
  std::string text = fmt::format("arena of {} (least possible: {}), {} of arguments, results and constants{}\n",
                                 format_bytes(plan.arena_bytes), format_bytes(plan.lower_bound),
                                 format_bytes(plan.argument_bytes), kept_text(plan));
  text += fmt::format("{:>14} {:>14} {:>11}  {}\n", "offset", "bytes", "launches", "value");
  for (const MemoryPlan::Block& block : blocks)
    text += fmt::format(
        "{:>14} {:>14} {:>11}  {}\n", block.offset, block.bytes,
        block.first == block.last ? fmt::format("{}", block.first) : fmt::format("{}..{}", block.first, block.last),
        program.buffers[block.buffer].name);
  return text;
}

std::string kept_text(const MemoryPlan& plan) {
  return plan.kept_bytes == 0 ? "" : fmt::format(", packed weights {}", format_bytes(plan.kept_bytes));
}

std::string format_bytes(std::int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  const char* unit = "B";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, unit);
}

std::string describe(const MemoryPlan& plan, const Program& program, int most) {
  std::string text =
      fmt::format("memory: arena {} (lower bound {}), arguments and results {}{}\n", format_bytes(plan.arena_bytes),
                  format_bytes(plan.lower_bound), format_bytes(plan.argument_bytes), kept_text(plan));
  if (plan.peak_launch < 0 || program.launches.empty()) return text;
  const Launch& peak = program.launches[plan.peak_launch];
  text += fmt::format("  at the peak, in {} ({}):\n", peak.info.ops.empty() ? "?" : peak.info.ops.back().to_string(),
                      peak.loc.to_string());
  std::vector<const Block*> live;
  for (const Block& block : plan.blocks)
    if (block.first <= plan.peak_launch && plan.peak_launch <= block.last) live.push_back(&block);
  std::stable_sort(live.begin(), live.end(), [](const Block* a, const Block* b) { return a->bytes > b->bytes; });
  for (std::size_t i = 0; i < live.size() && i < static_cast<std::size_t>(most); ++i) {
    const ProgramBuffer& buffer = program.buffers[live[i]->buffer];
    text += fmt::format("    {:>9}  {}  {}\n", format_bytes(live[i]->bytes), buffer.name, buffer.loc.to_string());
  }
  if (live.size() > static_cast<std::size_t>(most)) text += fmt::format("    and {} more\n", live.size() - most);
  return text;
}

}  // namespace lathe
