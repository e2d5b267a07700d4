#include "passes/lowering/elementwise/saved_values.h"

#include <set>

namespace lathe {

using Kind = ElementwiseInstruction::Kind;
using Scope = ElementwiseEmitter::Scope;

void SavedValues::hoist(int instruction, Scope& row) const {
  walk({&instruction, 1}, [&](int i) {
    if (row.find(i) || program_[i].kind == Kind::reduce) return false;
    if (loops_.varies(i)) return true;
    emitter_.emit(i, row);
    return false;
  });
}

void SavedValues::keep(int value, const ElementwiseStore* spill) {
  const int buffer = lowering_.buffer_of(spill->node);
  std::erase_if(spills_, [&](const auto& entry) { return lowering_.buffer_of(entry.second->node) == buffer; });
  spills_[value] = spill;
}

void SavedValues::bind(std::span<const int> instructions, Scope& element, const Reload& reload) const {
  walk(instructions, [&](int i) {
    if (element.find(i) || program_[i].kind == Kind::reduce) return false;
    const auto at = spills_.find(i);
    if (at != spills_.end()) element.bind(i, reload(i, *at->second));
    return at == spills_.end();
  });
}

void SavedValues::walk(std::span<const int> instructions, const std::function<bool(int)>& visit) const {
  std::set<int> seen;
  std::vector<int> work(instructions.rbegin(), instructions.rend());  // the next one is at the back
  while (!work.empty()) {
    const int i = work.back();
    work.pop_back();
    const std::vector<int>& args = program_[i].args;
    if (seen.insert(i).second && visit(i)) work.insert(work.end(), args.rbegin(), args.rend());
  }
}

}  // namespace lathe
