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
  for (const PointStore& store : program_.stores)
    if (varies(store)) loops_[static_cast<std::size_t>(level(store.value))].stores.push_back(&store);
  for (int l = 0; l < static_cast<int>(loops_.size()); ++l) park(l);
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

void RowLoops::park(int loop) {
  std::vector<int> occupied;
  for (const RowLoop& l : loops_)
    for (const RowLoop::Parked& parked : l.parked) occupied.push_back(lowering_.buffer_of(parked.place->node));
  for (int i = 0; i < program_.size(); ++i) {
    if (level(i) != loop || !varies(i) || program_[i].kind != Kind::scalar || !program_[i].node.valid()) continue;
    if (arithmetic_cost(lowering_.graph[program_[i].node]) < costly || !needed_in(loop, i)) continue;
    int last_use = loop;
    for (int l = loop + 1; l < static_cast<int>(loops_.size()); ++l)
      if (needed_in(l, i)) last_use = l;
    if (last_use == loop) continue;
    if (const PointStore* place = parking_place(i, loop, last_use, occupied))
      loops_[static_cast<std::size_t>(loop)].parked.push_back({i, place});
  }
}

/// Whether a loop computes or reads back the value, what earlier loops stored being there already.
bool RowLoops::needed_in(int loop, int value) const {
  const RowLoop& l = loops_[static_cast<std::size_t>(loop)];
  return std::any_of(l.reductions.begin(), l.reductions.end(),
                     [&](int r) { return reaches(program_[r].args[0], value, loop); }) ||
         std::any_of(l.stores.begin(), l.stores.end(),
                     [&](const PointStore* store) { return reaches(store->value, value, loop); });
}

bool RowLoops::reaches(int from, int wanted, int loop) const {
  if (from == wanted) return true;
  if (program_[from].kind == Kind::reduce || from < wanted) return false;
  const bool stored = std::any_of(program_.stores.begin(), program_.stores.end(), [&](const PointStore& store) {
    return store.value == from && varies(store) && level(from) < loop;
  });
  if (stored) return false;
  const auto& args = program_[from].args;
  return std::any_of(args.begin(), args.end(), [&](int arg) { return reaches(arg, wanted, loop); });
}

/// A result that is written when the value has had its last use, or in that very loop.
const PointStore* RowLoops::parking_place(int value, int loop, int last_use, std::vector<int>& occupied) const {
  for (const PointStore& store : program_.stores) {
    if (!varies(store) || level(store.value) <= loop || level(store.value) < last_use) continue;
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
