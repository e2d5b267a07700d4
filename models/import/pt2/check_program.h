#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "models/import/op_table.h"
#include "models/import/pt2/program/exported_program.h"
#include "models/import/pt2/storage_owners.h"

namespace lathe::pt2 {

/// Returns the domain and the name of a target: {"aten", "add.Tensor"} for "torch.ops.aten.add.Tensor". The overload
/// "default" is left out.
std::pair<std::string, std::string> op_of(std::string_view target);

/// Returns the record of a target, or, for an op that writes in place, of the op that returns the new value; null if
/// there is none.
const importing::OpRecord* find_op(const importing::OpTable& ops, std::string_view target);

/// Returns whether a node writes to its operand 0. A dropout in place of a model in evaluation mode does not.
bool writes_in_place(const NodePart& node, const importing::OpRecord& record);

/// Returns the name that an op's record has for an argument of a node: ops that write in place call their operand
/// "self".
std::string_view record_name(const importing::OpRecord& record, const NodePart& node, const NamedArgument& argument);

/// Returns the subgraph that a higher-order op runs once, without a condition; null for other targets. Such ops wrap
/// parts of a model in torch.no_grad() and torch.autocast(enabled=False).
const GraphPart* wrapped_graph(const NodePart& node);

/// Returns whether an argument has no effect on elements, whatever its value: a device or a memory format, or the
/// name of one, such as pin_memory.
bool is_harmless(const NamedArgument& argument);

/// The values that the nodes of a program and of its subgraphs read, and write in place.
struct ProgramAccesses {
  std::map<const NodePart*, WrittenValues> writes;
  std::map<const GraphPart*, std::set<std::string, std::less<>>> reads;  ///< values that nodes or outputs read
  std::set<std::string> written_inputs;                                  ///< buffers and constants
};

/// Returns the accesses of a program. Throws UserError [import_unsupported] that lists all ops, arguments, inputs and
/// outputs of a program that are not imported, with their nodes, including those of subgraphs.
ProgramAccesses check_program(const ExportedProgram& program, const importing::OpTable& ops, const std::string& file);

/// Returns the name of a node for locations: "/layers.0/attn/linear_1".
std::string node_path(const NodePart& node);

}  // namespace lathe::pt2
