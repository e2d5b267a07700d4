#include "passes/lowering/row_loops.h"

#include <algorithm>

#include "passes/fusion/inline_policy.h"

namespace lathe {

using Kind = PointInstruction::Kind;

namespace {
constexpr int costly = 8;  // arithmetic worth a store and a load
}

RowLoops::RowLoops(const LoweringContext& lowering, const PointProgram& program, std::uint64_t inner)
    : lowering_(lowering), program_(program), inner_(inner) {
  find_levels();
  for (int i = 0; i < program_.size(); ++i)
    if (program_[i].kind == Kind::reduce) loops_[static_cast<std::size_t>(level(i) - 1)].reductions.push_back(i);
  for (int i = 0; i < program_.size(); ++i)
    if (program_[i].kind == Kind::column) loops_[static_cast<std::size_t>(level(i))].columns.push_back(i);
  for (const PointStore& store : program_.stores)
    if (varies(store)) loops_[static_cast<std::size_t>(level(store.value))].stores.push_back(&store);
  park();
}

bool RowLoops::varies(int instruction) const {
  return (program_.depends[static_cast<std::size_t>(instruction)] & inner_) != 0;
}

bool RowLoops::varies(const PointStore& store) const {
  if (varies(store.value)) return true;
  for (std::size_t d = 0; d < store.form.coefficients.size(); ++d)
    if ((inner_ >> d & 1) != 0 && !store.form.coefficients[d].is(0)) return true;
  return false;
}

void RowLoops::find_levels() {
  int last = 0;
  for (int i = 0; i < program_.size(); ++i) {
    int level = 0;
    for (const int arg : program_[i].args) level = std::max(level, levels_[static_cast<std::size_t>(arg)]);
    if (program_[i].kind == Kind::reduce) ++level;
    levels_.push_back(level);
    last = std::max(last, level);
  }
  loops_.resize(static_cast<std::size_t>(last) + 1);
}

void RowLoops::park() {
  const int count = static_cast<int>(loops_.size());
  std::vector<std::vector<bool>> needed;
  for (int l = 0; l < count; ++l) needed.push_back(needed_in(l));
  std::vector<int> occupied;
  for (int i = 0; i < program_.size(); ++i) {
    const auto at = static_cast<std::size_t>(i), loop = static_cast<std::size_t>(level(i));
    if (!varies(i) || program_[i].kind != Kind::scalar || !program_[i].node.valid() || !needed[loop][at]) continue;
    if (arithmetic_cost(lowering_.graph[program_[i].node]) < costly) continue;
    int last_use = level(i);
    for (int l = level(i) + 1; l < count; ++l)
      if (needed[static_cast<std::size_t>(l)][at]) last_use = l;
    if (last_use == level(i)) continue;
    if (const PointStore* place = parking_place(i, last_use, occupied)) loops_[loop].parked.push_back({i, place});
  }
}

/// Which values a loop computes or reads back, what earlier loops stored being there already.
std::vector<bool> RowLoops::needed_in(int loop) const {
  const RowLoop& l = loops_[static_cast<std::size_t>(loop)];
  std::vector<bool> needed(program_.code.size(), false), stored(program_.code.size(), false);
  for (const int r : l.reductions) needed[static_cast<std::size_t>(program_[r].args[0])] = true;
  for (const int c : l.columns) needed[static_cast<std::size_t>(program_[c].args[0])] = true;
  for (const PointStore* store : l.stores) needed[static_cast<std::size_t>(store->value)] = true;
  for (const PointStore& store : program_.stores)
    if (varies(store) && level(store.value) < loop) stored[static_cast<std::size_t>(store.value)] = true;
  for (int i = program_.size() - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    if (!needed[at] || stored[at] || program_[i].kind == Kind::reduce) continue;
    for (const int arg : program_[i].args) needed[static_cast<std::size_t>(arg)] = true;
  }
  return needed;
}

/// A result that is written when the value has had its last use, or in that very loop.
const PointStore* RowLoops::parking_place(int value, int last_use, std::vector<int>& occupied) const {
  for (const PointStore& store : program_.stores) {
    if (!varies(store) || level(store.value) < last_use) continue;
    if (program_[store.value].dtype != program_[value].dtype) continue;
    const int buffer = lowering_.buffer_of(store.node);
    const bool read = std::any_of(program_.code.begin(), program_.code.end(), [&](const PointInstruction& i) {
      return i.buffer.valid() && lowering_.buffer_of(i.buffer) == buffer;
    });
    if (read || std::find(occupied.begin(), occupied.end(), buffer) != occupied.end()) continue;
    occupied.push_back(buffer);
    return &store;
  }
  return nullptr;
}

}  // namespace lathe
