#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <unordered_map>

#include "models/import/import.h"
#include "models/import/op_table.h"
#include "models/import/pt2/archive/program_tensors.h"
#include "models/import/pt2/check_program.h"
#include "models/import/pt2/program/exported_program.h"
#include "models/import/pt2/sizes/program_dims.h"
#include "models/import/pt2/sizes/size_assertions.h"

namespace lathe::pt2 {

/// The values of a graph or subgraph, by name.
using Values = std::unordered_map<std::string, importing::Value>;

/// Builds the graph of a program, node by node.
class ProgramImporter {
 public:
  ProgramImporter(const std::filesystem::path& path, const ExportedProgram& program, const ProgramAccesses& accesses,
                  const ProgramTensors& tensors, const importing::OpTable& ops,
                  const importing::ImportOptions& options, importing::InputDims& input_dims);

  importing::ImportedGraph import();

 private:
  void define(Values& values, const std::string& name, importing::Value value) const;
  const importing::Value& value_of(const Values& values, const NodePart& node, const std::string& name) const;

  void add_inputs(Values& values);
  void add_user_input(Values& values, const Argument& input);
  /// Returns a tensor of the file as a parameter, a state or a constant.
  importing::Value stored(const InputSpec& input);
  bool is_updated(const InputSpec& input) const;
  void add_outputs(const Values& values);
  /// Throws UserError [import_unsupported] for a tensor that is written in place, and read by another name.
  void check_written() const;
  /// Buffers that nodes write in place get their last values.
  void add_written(const Values& values);
  /// Records the limits of the symbols and the guards of the program as run-time checks.
  void add_ranges() const;
  void add_guards() const;
  /// Throws the error of a range or a guard that the sizes in the options violate.
  void check_fixed_sizes() const;
  /// Returns the unknown sizes of the graph's inputs.
  std::set<std::string> bound_names() const;

  void add_graph(Values& values, const GraphPart& graph);
  void add_wrapped(Values& values, const NodePart& node, const GraphPart& inner);
  /// Adds a branch, or the body of a loop, to a graph. Returns its outputs.
  importing::Results add_body(const NodePart& node, const GraphPart& body, std::vector<importing::Value> inputs,
                              const Graph& into);
  void add_op(Values& values, const GraphPart& graph, const NodePart& node);
  /// Returns the value in the dtype and the shape of another one.
  importing::Value in_type_of(const importing::Value& old, const importing::Value& value) const;
  /// Replaces the values that an op writes in place by its result.
  void replace_written(Values& values, const GraphPart& graph, const NodePart& node, const WrittenValues& written);
  std::string add_scatter(Values& values, const GraphPart& graph, const NodePart& slice, const std::string& part);
  /// Throws UserError [import_unsupported] unless operand 0 of a node has all elements of its storage in order.
  void require_row_major(const GraphPart& graph, const NodePart& node) const;
  /// Throws UserError [import_file] if a result does not have the dtype and the sizes in the file.
  void check_type(const NodePart& node, const std::string& name, const TensorMeta& meta,
                  const importing::Value& value) const;

  /// The arguments of a node, as the layer for all formats has them.
  std::vector<importing::Value> operands(const Values& values, const GraphPart& graph, const NodePart& node,
                                         const importing::OpRecord& record, importing::SourceNode& source) const;
  importing::Value operand(const Values& values, const NodePart& node, const NamedArgument& argument) const;
  importing::Value sizes(const Values& values, const NodePart& node, const NamedArgument& argument) const;
  void add_attributes(const Values& values, const NodePart& node, const importing::OpRecord& record,
                      importing::SourceNode& source);
  Location location(const NodePart& node) const;
  [[noreturn]] void fail(const NodePart& node, std::string_view message, std::string_view label,
                         std::string_view hint = {}) const;

  std::string file_;
  const ExportedProgram& program_;
  const ProgramAccesses& accesses_;
  const ProgramTensors& tensors_;
  const importing::OpTable& ops_;
  const importing::ImportOptions& options_;
  ProgramDims dims_;
  SizeAssertions assertions_;
  importing::ImportedGraph imported_;
  Graph into_;              ///< that nodes are added to: that of the program, or the body of a loop
  int depth_ = 0;           ///< of subgraphs
  std::int64_t nodes_ = 0;  ///< added so far, with those of subgraphs
  std::map<std::string, importing::Value, std::less<>> stored_;  ///< by place, for tied weights
  std::map<std::string, importing::Value, std::less<>> buffers_;
};

}  // namespace lathe::pt2
