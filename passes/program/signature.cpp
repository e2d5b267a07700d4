#include "passes/program/signature.h"

#include <map>

#include "ir/support/error.h"

namespace lathe {

ir::Graph signature_of(const ir::Graph& graph) {
  ir::Graph signature;
  signature.name = graph.name;
  for (const ir::ValueId id : graph.arguments()) signature.nodes.push_back(graph[id]);
  signature.checks = graph.checks;
  return signature;
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
