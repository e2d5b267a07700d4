#include "passes/lowering/elementwise/saved_values.h"

#include <set>

namespace lathe {

using Kind = PointInstruction::Kind;
using Scope = PointEmitter::Scope;

void SavedValues::hoist(int instruction, Scope& row) const {
  walk({&instruction, 1}, [&](int i) {
    if (row.find(i) || program_[i].kind == Kind::reduce) return false;
    if (loops_.varies(i)) return true;
    emitter_.emit(i, row);
    return false;
  });
}

void SavedValues::keep(int value, const PointStore* place) {
  const int buffer = lowering_.buffer_of(place->node);
  std::erase_if(places_, [&](const auto& entry) { return lowering_.buffer_of(entry.second->node) == buffer; });
  places_[value] = place;
}

void SavedValues::bind(std::span<const int> instructions, Scope& element, const Reload& reload) const {
  walk(instructions, [&](int i) {
    if (element.find(i) || program_[i].kind == Kind::reduce) return false;
    const auto at = places_.find(i);
    if (at != places_.end()) element.bind(i, reload(i, *at->second));
    return at == places_.end();
  });
}

void SavedValues::walk(std::span<const int> instructions, const std::function<bool(int)>& visit) const {
  std::set<int> seen;
  std::vector<int> work(instructions.rbegin(), instructions.rend());  // the next one last
  while (!work.empty()) {
    const int i = work.back();
    work.pop_back();
    const std::vector<int>& args = program_[i].args;
    if (seen.insert(i).second && visit(i)) work.insert(work.end(), args.rbegin(), args.rend());
  }
}

}  // namespace lathe
