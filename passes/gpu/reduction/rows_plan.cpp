#include "passes/gpu/reduction/rows_plan.h"

#include <algorithm>
#include <bit>

#include "passes/gpu/gpu_kernels.h"
#include "passes/gpu/program_vectors.h"

namespace lathe::gpu {

using Kind = ElementwiseInstruction::Kind;

namespace {
bool works(const RowLoop& loop) { return !loop.reductions.empty() || !loop.stores.empty(); }
}  // namespace

RowsPlan::RowsPlan(const GpuContext& lowering, const Region& region)
    : program(region_program(lowering.graph, lowering.plan, region)),
      space(program, region.rows().inner, program_vectors(program, lowering.vectors())),
      loops(lowering, program, space.inner_bits) {
  choose_threads(lowering.gpu);
  choose_splits(lowering);
  if (!is_cut()) steps = {{0, static_cast<int>(loops.loops().size()), true}};
}

/// Assigns about four vectors of a row to a thread, and a warp up to a block of threads to a row if it is long
/// enough. A single row gets the largest block. An unknown length is treated as long.
void RowsPlan::choose_threads(const GpuInfo& gpu) {
  constexpr std::int64_t long_row = 512;  // vectors
  const auto width = program.points(space.inner).value();
  const std::int64_t count = width ? (*width + space.lanes - 1) / space.lanes : long_row;
  const auto enough = static_cast<int>(std::bit_ceil(
      static_cast<std::uint64_t>(std::clamp<std::int64_t>(count / 4, gpu.warp_threads, block_threads))));
  const auto most = static_cast<int>(
      std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(count, 1, gpu.most_block_threads))));
  const bool alone = program.points(space.outer).is(1);
  threads = alone ? most : std::min(enough, most);
  rows = alone ? 1 : std::max(1, block_threads / threads);
}

void RowsPlan::choose_splits(const GpuContext& lowering) {
  const std::vector<Step> separate = separate_steps();
  std::int64_t bytes = 0;
  for (int i = 0; i < program.size(); ++i)
    if (program[i].buffer.valid() && loops.varies(i)) bytes += size_in_bytes(program[i].dtype);
  bytes *= std::count_if(loops.loops().begin(), loops.loops().end(), works);
  splits = splits_of(lowering.gpu, lowering.tuned.reductions,
                     {.results = program.points(space.outer).value(),
                      .length = program.points(space.inner).value(),
                      .bytes = bytes,
                      .threads = static_cast<double>(threads),
                      .split_threads = static_cast<double>(block_threads),
                      .kernels = static_cast<int>(separate.size()) - 1});
  if (!is_cut()) return;
  threads = block_threads, rows = 1;
  steps = separate;
  for (const RowLoop& loop : loops.loops())
    for (const int i : loop.reductions)
      partials[i] = lowering.workspace(compute_type(program[i].dtype), Dim(splits) * program.points(space.outer),
                                       "partial results");
}

bool RowsPlan::has_singles() const {
  return std::any_of(program.stores.begin(), program.stores.end(),
                     [&](const ElementwiseStore& store) { return !loops.varies(store); });
}

std::vector<RowsPlan::Step> RowsPlan::separate_steps() const {
  std::vector<Step> separate;
  const int count = static_cast<int>(loops.loops().size());
  for (int l = 0; l < count; ++l)
    if (works(loops.loops()[l])) separate.push_back({l, l + 1, false});
  if (has_singles()) separate.push_back({count, count, true});
  return separate;
}

ElementwiseProgram RowsPlan::part(const Step& step) const {
  std::vector<bool> needed(program.code.size(), false);
  const auto need = [&](int i) { needed[i] = true; };
  for (int l = step.first; l < step.last; ++l) {
    const RowLoop& loop = loops.loops()[l];
    for (const int i : loop.reductions) need(i);
    for (const ElementwiseStore* store : loop.stores) need(store->value);
    for (const auto& [value, spill] : loop.spilled) need(value);
  }
  ElementwiseProgram part = program;
  std::erase_if(part.stores, [&](const ElementwiseStore& store) {
    return loops.varies(store) ? step.first == step.last : !step.singles;
  });
  if (step.singles)
    for (const ElementwiseStore& store : part.stores)
      if (!loops.varies(store)) need(store.value);
  for (int i = program.size() - 1; i >= 0; --i) {
    if (!needed[i]) {
      part.code[i] = {.kind = Kind::constant, .dtype = program[i].dtype};
    } else if (program[i].kind != Kind::reduce || loops.level(i) > step.first) {
      for (const int arg : program[i].args) need(arg);
    }
  }
  return part;
}

std::vector<int> RowsPlan::combined(const ElementwiseProgram& part, int loop) const {
  std::vector<int> reductions = loops.loops()[loop].reductions;
  std::erase_if(reductions, [&](int i) { return part[i].kind != Kind::reduce; });
  return reductions;
}

}  // namespace lathe::gpu
