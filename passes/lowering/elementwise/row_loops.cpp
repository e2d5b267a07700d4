#include "passes/lowering/elementwise/row_loops.h"

#include <algorithm>

#include "passes/fusion/inline_policy.h"

namespace lathe {

using Kind = ElementwiseInstruction::Kind;

namespace {
constexpr int costs_a_store = 8;  // arithmetic cost from which a value is spilled rather than recomputed
}

std::vector<int> loop_levels(const ElementwiseProgram& program) {
  std::vector<int> levels;
  for (const ElementwiseInstruction& i : program.code) {
    int level = 0;
    for (const int arg : i.args) level = std::max(level, levels[arg]);
    levels.push_back(i.kind == Kind::reduce ? level + 1 : level);
  }
  return levels;
}

RowLoops::RowLoops(const LoweringContext& lowering, const ElementwiseProgram& program, std::uint64_t inner)
    : lowering_(lowering), program_(program), inner_(inner) {
  levels_ = loop_levels(program);
  loops_.resize(static_cast<std::size_t>(levels_.empty() ? 0 : *std::max_element(levels_.begin(), levels_.end())) +
                1);
  for (int i = 0; i < program_.size(); ++i)
    if (program_[i].kind == Kind::reduce) loops_[level(i) - 1].reductions.push_back(i);
  for (int i = 0; i < program_.size(); ++i)
    if (program_[i].kind == Kind::column) loops_[level(i)].columns.push_back(i);
  for (const ElementwiseStore& store : program_.stores)
    if (varies(store)) loops_[level(store.value)].stores.push_back(&store);
  spill();
}

bool RowLoops::varies(int instruction) const { return (program_.depends[instruction] & inner_) != 0; }

bool RowLoops::varies(const ElementwiseStore& store) const {
  if (varies(store.value)) return true;
  for (std::size_t d = 0; d < store.form.coefficients.size(); ++d)
    if ((inner_ >> d & 1) != 0 && !store.form.coefficients[d].is(0)) return true;
  return false;
}

void RowLoops::spill() {
  const int count = static_cast<int>(loops_.size());
  std::vector<std::vector<bool>> needed;
  for (int l = 0; l < count; ++l) needed.push_back(needed_in(l));
  std::vector<int> occupied;
  for (int i = 0; i < program_.size(); ++i) {
    const auto at = static_cast<std::size_t>(i), loop = static_cast<std::size_t>(level(i));
    if (!varies(i) || program_[i].kind != Kind::scalar || !program_[i].node.valid() || !needed[loop][at]) continue;
    if (arithmetic_cost(lowering_.graph[program_[i].node]) < costs_a_store) continue;
    int last_use = level(i);
    for (int l = level(i) + 1; l < count; ++l)
      if (needed[l][at]) last_use = l;
    if (last_use == level(i)) continue;
    if (const ElementwiseStore* spill = find_spill(i, last_use, occupied)) loops_[loop].spilled.push_back({i, spill});
  }
}

/// By value: whether a loop computes or reloads it, given the stores of earlier loops and a spill of `kept`.
std::vector<bool> RowLoops::needed_in(int loop, int kept) const {
  const RowLoop& l = loops_[loop];
  std::vector<bool> needed(program_.code.size(), false), stored(program_.code.size(), false);
  for (const int r : l.reductions) needed[program_[r].args[0]] = true;
  for (const int c : l.columns) needed[program_[c].args[0]] = true;
  for (const ElementwiseStore* store : l.stores) needed[store->value] = true;
  for (const ElementwiseStore& store : program_.stores)
    if (varies(store) && level(store.value) < loop) stored[store.value] = true;
  if (kept >= 0 && level(kept) < loop) stored[kept] = true;
  for (int i = program_.size() - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    if (!needed[at] || stored[at] || program_[i].kind == Kind::reduce) continue;
    for (const int arg : program_[i].args) needed[arg] = true;
  }
  return needed;
}

/// Whether the previous content of a spill is still read after the loop that computes `kept` and spills it there: by
/// a later loop or at another element.
bool RowLoops::read_after(const ElementwiseStore& spill, int kept) const {
  const int buffer = lowering_.buffer_of(spill.node);
  const auto lies_there = [&](const ElementwiseInstruction& i) {
    return i.buffer.valid() && lowering_.buffer_of(i.buffer) == buffer;
  };
  for (const ElementwiseInstruction& i : program_.code)
    if (lies_there(i) && (i.kind != Kind::load || i.form != spill.form)) return true;
  for (int l = level(kept) + 1; l < static_cast<int>(loops_.size()); ++l) {
    const std::vector<bool> needed = needed_in(l, kept);
    for (int i = 0; i < program_.size(); ++i)
      if (needed[i] && lies_there(program_[i])) return true;
  }
  return false;
}

/// Returns a result of the same dtype that is written in or after the last loop that uses the value, or nullptr.
const ElementwiseStore* RowLoops::find_spill(int value, int last_use, std::vector<int>& occupied) const {
  for (const ElementwiseStore& store : program_.stores) {
    if (!varies(store) || level(store.value) < last_use) continue;
    if (program_[store.value].dtype != program_[value].dtype) continue;
    const int buffer = lowering_.buffer_of(store.node);
    if (read_after(store, value) || std::find(occupied.begin(), occupied.end(), buffer) != occupied.end()) continue;
    occupied.push_back(buffer);
    return &store;
  }
  return nullptr;
}

}  // namespace lathe
