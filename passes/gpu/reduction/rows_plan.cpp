#include "passes/gpu/reduction/rows_plan.h"

#include <algorithm>
#include <bit>
#include <iterator>

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
  kept.resize(loops.loops().size());
  if (!is_cut()) choose_kept(lowering);
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

/// Returns the loads that vary along the row and that a loop needs. It reloads what earlier loops have stored.
std::vector<int> RowsPlan::loads_of(int loop) const {
  std::vector<bool> needed(program.code.size(), false), stored(program.code.size(), false);
  const RowLoop& own = loops.loops()[loop];
  for (const int i : own.reductions) needed[program[i].args[0]] = true;
  for (const ElementwiseStore* store : own.stores) needed[store->value] = true;
  for (const auto& [value, spill] : own.spilled) needed[value] = true;
  for (int l = 0; l < loop; ++l) {
    for (const ElementwiseStore* store : loops.loops()[l].stores) stored[store->value] = true;
    for (const auto& [value, spill] : loops.loops()[l].spilled) stored[value] = true;
  }
  std::vector<int> loads;
  for (int i = program.size() - 1; i >= 0; --i) {
    if (!needed[i] || stored[i] || program[i].kind == Kind::reduce) continue;
    if (program[i].kind == Kind::load && loops.varies(i)) loads.push_back(i);
    for (const int arg : program[i].args) needed[arg] = true;
  }
  return loads;
}

/// Keeps rows if at least two blocks of a multiprocessor can, so that one computes while the other reads.
void RowsPlan::choose_kept(const GpuContext& lowering) {
  constexpr std::int64_t multiprocessor_threads = 1024, reserved = 1024, result_bytes = 8;
  const auto width = program.points(space.inner).value();
  if (!width || rows > 1 || program.points(space.outer).is(1)) return;
  std::vector<std::vector<int>> loads;
  std::vector<int> uses(program.code.size(), 0);
  for (int l = 0; l < static_cast<int>(loops.loops().size()); ++l)
    for (const int i : loads.emplace_back(loads_of(l))) ++uses[i];
  std::int64_t element = 0, reductions = 0;
  for (int i = 0; i < program.size(); ++i) {
    if (uses[i] > 1) element += static_cast<std::int64_t>(size_in_bytes(program[i].dtype));
    if (program[i].kind == Kind::reduce) ++reductions;
  }
  const std::int64_t bytes = (*width + space.lanes) * element,
                     block = bytes + reserved + multiprocessor_threads / 2 * reductions * result_bytes,
                     blocks = lowering.gpu.most_shared_bytes / block;
  if (bytes < lowering.tuned.reductions.least_kept_bytes || blocks < 2) return;
  for (std::size_t l = 0; l < loads.size(); ++l)
    std::copy_if(loads[l].begin(), loads[l].end(), std::back_inserter(kept[l]), [&](int i) { return uses[i] > 1; });
  const auto each = std::bit_floor(static_cast<std::uint64_t>(multiprocessor_threads / blocks));
  threads = static_cast<int>(std::max<std::uint64_t>(each, block_threads));
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
