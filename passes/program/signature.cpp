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

namespace {

void add_unknowns(const Dim& dim, std::set<std::string>& into) {
  for (std::string& name : dim.unknowns()) into.insert(std::move(name));
}

/// Adds the unknown dims of buffers, launches and loops.
void add_unknowns_of_work(const Program& program, std::set<std::string>& into) {
  for (const ProgramBuffer& buffer : program.buffers) {
    add_unknowns(buffer.elements, into);
    if (buffer.slice) add_unknowns(buffer.slice->stride, into);
  }
  for (const ProgramLoop& loop : program.loops) add_unknowns(loop.trips, into);
  for (const Launch& launch : program.launches)
    for (const Dim& dim : launch.dims) add_unknowns(dim, into);
}

void add_unknowns(const std::vector<Program::Slot>& slots, std::set<std::string>& into) {
  for (const Program::Slot& slot : slots)
    for (const Dim& dim : slot.shape) add_unknowns(dim, into);
}

}  // namespace

std::set<std::string> unknown_dims(const Program& program) {
  std::set<std::string> found;
  add_unknowns_of_work(program, found);
  for (const auto* slots : {&program.inputs, &program.states, &program.outputs}) add_unknowns(*slots, found);
  for (const ir::DimCheck& check : program.checks) {
    add_unknowns(check.left, found);
    add_unknowns(check.right, found);
  }
  return found;
}

std::vector<std::string> dims_without_argument(const Program& program) {
  std::set<std::string> unknown, known;
  add_unknowns_of_work(program, unknown);
  add_unknowns(program.inputs, known);
  add_unknowns(program.states, known);
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
