#include "runtime/library/library_plan.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <tuple>

#include "ir/hardware/memory_units.h"
#include "runtime/library/split_packing.h"

namespace lathe {

std::vector<int> LibraryPlan::block_order() const {
  std::vector<int> order(states.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int i) {
    const int bytes = static_cast<int>(size_in_bytes(states[i].dtype));
    return std::tuple(!states[i].shape.numel().value(), -bytes, std::string_view(states[i].name));
  });
  return order;
}

std::int64_t LibraryPlan::file_bytes() const {
  std::int64_t bytes = 0;
  for (const LibrarySlot& state : states)
    bytes += state.shape.numel().value().value_or(0) * static_cast<std::int64_t>(size_in_bytes(state.dtype));
  return bytes;
}

LibrarySlot library_slot(const Program::Slot& slot, CNames& names) {
  return {slot.name, names.identifier(slot.name), slot.dtype, slot.shape, slot.is_parameter, slot.is_updated};
}

void set_slots(LibraryFunction& function) {
  const Program& program = function.programs[0];
  CNames inputs, outputs;
  for (const Program::Slot& slot : program.inputs) function.inputs.push_back(library_slot(slot, inputs));
  for (const Program::Slot& slot : program.outputs) function.outputs.push_back(library_slot(slot, outputs));
  if (places_in_packed(program).empty()) return;
  for (std::vector<LibrarySlot>* slots : {&function.inputs, &function.outputs})
    for (LibrarySlot& slot : *slots)
      if (slot.name == packed_weights) slot.alignment = cache_line_bytes;
}

LibraryPlan plan_of(const Program& program, const std::string& target, const DimBindings& most) {
  LibraryPlan plan{.prefix = CNames().identifier(program.name), .targets = {target}};
  CNames dims, states;
  for (const auto& [name, size] : most)
    plan.dims.push_back({name, dims.identifier(name), std::max<std::int64_t>(1, size)});
  LibraryFunction function{.name = "", .checks = program.checks, .programs = {program}};
  split_packing(function.programs);
  set_slots(function);
  for (const Program::Slot& slot : program.states) {
    function.states.push_back(static_cast<int>(plan.states.size()));
    plan.states.push_back(library_slot(slot, states));
    plan.initials.push_back(Init::zeros());
  }
  plan.functions.push_back(std::move(function));
  return plan;
}

}  // namespace lathe
