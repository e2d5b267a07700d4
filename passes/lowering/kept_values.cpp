#include "passes/lowering/kept_values.h"

#include <set>

namespace lathe {

using Kind = PointInstruction::Kind;
using Scope = PointEmitter::Scope;

void KeptValues::hoist(int instruction, Scope& row) const {
  if (row.find(instruction) || program_[instruction].kind == Kind::reduce) return;
  if (!loops_.varies(instruction)) {
    emitter_.emit(instruction, row);
    return;
  }
  for (const int arg : program_[instruction].args) hoist(arg, row);
}

void KeptValues::keep(int value, const PointStore* place) {
  const int buffer = lowering_.buffer_of(place->node);
  std::erase_if(places_, [&](const auto& entry) { return lowering_.buffer_of(entry.second->node) == buffer; });
  places_[value] = place;
}

void KeptValues::bind(std::span<const int> instructions, Scope& element, const Reload& reload) const {
  std::set<int> seen;
  const auto visit = [&](auto& self, int i) -> void {
    if (!seen.insert(i).second || element.find(i) || program_[i].kind == Kind::reduce) return;
    if (const auto at = places_.find(i); at != places_.end()) return element.bind(i, reload(i, *at->second));
    for (const int arg : program_[i].args) self(self, arg);
  };
  for (const int i : instructions) visit(visit, i);
}

}  // namespace lathe
