#include "passes/program/signature.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "ir/ops/primitives/primitives.h"
#include "ir/support/error.h"
#include "ir/tensor/binding.h"
#include "ir/tensor/builder.h"

namespace lathe {

ir::Graph signature_of(const ir::Graph& graph) {
  ir::Graph signature;
  signature.name = graph.name;
  for (const ir::ValueId id : graph.arguments()) signature.nodes.push_back(graph[id]);
  signature.checks = graph.checks;
  return signature;
}

ir::Graph signature_of(const Program& program) {
  ir::GraphBuilder builder(program.name);
  for (const Program::Slot& slot : program.inputs)
    builder.argument(ir::ops::input, slot.name, slot.dtype, slot.shape);
  for (const Program::Slot& slot : program.states)
    builder.argument(slot.is_parameter ? ir::ops::parameter : ir::ops::state, slot.name, slot.dtype, slot.shape);
  ir::Graph signature = builder.finish();
  signature.checks = program.checks;
  return signature;
}

std::vector<std::string> dims_without_argument(const Program& program) {
  std::set<std::string> unknown, known;
  const auto add = [](std::set<std::string>& into, const Dim& dim) {
    for (std::string& name : dim.unknowns()) into.insert(std::move(name));
  };
  for (const ProgramBuffer& buffer : program.buffers) {
    add(unknown, buffer.elements);
    if (buffer.slice) add(unknown, buffer.slice->stride);
  }
  for (const ProgramLoop& loop : program.loops) add(unknown, loop.trips);
  for (const Launch& launch : program.launches)
    for (const Dim& dim : launch.dims) add(unknown, dim);
  for (const auto* slots : {&program.inputs, &program.states})
    for (const Program::Slot& slot : *slots)
      for (const Dim& dim : slot.shape) add(known, dim);
  std::vector<std::string> found = ir::dims_without_argument(signature_of(program));
  std::ranges::set_difference(unknown, known, std::back_inserter(found));
  return found;
}

void set_user_types(Program& program, const ir::Graph& given) {
  std::map<std::string_view, ir::ValueId> arguments;
  for (const ir::ValueId id : given.arguments()) arguments[given[id].name] = id;
  const auto set = [&](Program::Slot& slot, ir::ValueId id) {
    slot.dtype = given[id].type.dtype;
    slot.shape = given[id].type.shape;
  };
  for (Program::Slot& slot : program.inputs) set(slot, arguments.at(slot.name));
  for (Program::Slot& slot : program.states) set(slot, arguments.at(slot.name));
  LATHE_ASSERT(program.outputs.size() == given.outputs.size());
  for (std::size_t i = 0; i < given.outputs.size(); ++i) set(program.outputs[i], given.outputs[i].value);
}

}  // namespace lathe
