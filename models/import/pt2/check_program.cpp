#include "models/import/pt2/check_program.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "ir/support/reports/unsupported_parts.h"
#include "models/import/pt2/program/effects.h"

namespace lathe::pt2 {

namespace {

using importing::OpRecord;

constexpr std::string_view no_grad = "torch.ops.higher_order.wrap_with_set_grad_enabled";
constexpr std::string_view autocast = "torch.ops.higher_order.wrap_with_autocast";

/// Collects the parts of a program that are not supported.
class Check {
 public:
  explicit Check(const importing::OpTable& ops) : ops_(ops) {}

  void signature(const ExportedProgram& program) {
    for (const InputSpec& input : program.inputs) {
      if (input.kind == InputSpec::Kind::object) parts_.add("an input that is a Python object", input.target);
      if (input.kind == InputSpec::Kind::token) {
        has_token_ = true;
        parts_.add("a token of effects", input.target);
      }
    }
    for (const OutputSpec& output : program.outputs)
      if (output.kind == OutputSpec::Kind::other)
        parts_.add(fmt::format("an output of the kind {}", output.target), "outputs");
  }

  void graph(const ExportedProgram& program) {
    StorageOwners owners(program.graph);
    for (const InputSpec& input : program.inputs)
      if (is_own(input)) owners.own(input.value.text);
    nodes(program.graph, owners);
    std::set<std::string> written;
    for (const NodePart& node : program.graph.nodes) {
      const auto found = accesses_.writes.find(&node);
      if (found == accesses_.writes.end()) continue;
      written.insert(found->second.names.begin(), found->second.names.end());
      written.insert(found->second.whole_names.begin(), found->second.whole_names.end());
    }
    for (const InputSpec& input : program.inputs)
      if (is_own(input) && written.contains(input.value.text)) accesses_.written_inputs.insert(input.value.text);
  }

  ProgramAccesses take_accesses() { return std::move(accesses_); }

  void report(const std::string& file) const {
    std::string_view hint;
    if (has_mutation_) hint = "call run_decompositions() on the exported program, which replaces such ops";
    if (has_token_) hint = "tokens order the effects of ops: remove such ops before the export";
    parts_.report(file, "Lathe does not import", "import_unsupported", hint);
  }

 private:
  /// Returns whether an input has storage that the program may write.
  static bool is_own(const InputSpec& input) {
    return input.kind == InputSpec::Kind::buffer || input.kind == InputSpec::Kind::constant;
  }

  void graph(const GraphPart& graph) {
    StorageOwners owners(graph);
    nodes(graph, owners);
  }

  void nodes(const GraphPart& graph, StorageOwners& owners) {
    accesses_.reads[&graph] = owners.reads();
    for (const NodePart& node : graph.nodes) this->node(node, owners);
  }

  void write(const NodePart& node, StorageOwners& owners) {
    WrittenValues written = owners.write(node);
    if (!written.names.empty()) {
      accesses_.writes.emplace(&node, std::move(written));
      return;
    }
    has_mutation_ = true;
    const auto [domain, name] = op_of(node.target);
    parts_.add(
        fmt::format("the op {}.{}, which writes to an input, a parameter, or a tensor with views that are read "
                    "later",
                    domain, name),
        node_path(node));
  }

  void node(const NodePart& node, StorageOwners& owners) {
    if (const GraphPart* const inner = wrapped_graph(node)) {
      owners.add(node, nullptr);
      return graph(*inner);
    }
    const auto [domain, name] = op_of(node.target);
    const OpRecord* const record = find_op(ops_, node.target);
    if (!record) {
      const auto [called_domain, called] = op_of(called_op(node));  // the op that a token is given to
      return parts_.add(fmt::format("the op {}.{}", called_domain, called), node_path(node));
    }
    if (writes_in_place(node, *record))
      write(node, owners);
    else
      owners.add(node, record);
    const auto operands = importing::words_of(record->operands);
    for (const NamedArgument& argument : node.arguments) {
      if (argument.value.graph) graph(*argument.value.graph);
      const bool is_operand = std::ranges::find(operands, record_name(*record, node, argument)) != operands.end();
      if (is_operand || importing::has_attribute(*record, argument.name) || is_harmless(argument)) continue;
      parts_.add(fmt::format("the argument {} of {}.{}", argument.name, domain, name), node_path(node));
    }
  }

  const importing::OpTable& ops_;
  UnsupportedParts parts_;
  ProgramAccesses accesses_;
  bool has_mutation_ = false, has_token_ = false;
};

bool is_false(const Argument& argument) { return argument.kind == Argument::Kind::boolean && argument.integer == 0; }

}  // namespace

std::pair<std::string, std::string> op_of(std::string_view target) {
  constexpr std::string_view prefix = "torch.ops.", suffix = ".default";
  if (target.starts_with(prefix)) target.remove_prefix(prefix.size());
  if (target.ends_with(suffix)) target.remove_suffix(suffix.size());
  const std::size_t dot = std::min(target.find('.'), target.size());
  return {std::string(target.substr(0, dot)), std::string(target.substr(std::min(dot + 1, target.size())))};
}

const OpRecord* find_op(const importing::OpTable& ops, std::string_view target) {
  const auto [domain, name] = op_of(target);
  if (const OpRecord* const record = ops.find(domain, name, 1)) return record;
  const auto [same, functional] = op_of(functional_target(target));
  return functional.empty() ? nullptr : ops.find(same, functional, 1);
}

bool writes_in_place(const NodePart& node, const OpRecord& record) {
  if (record.name == op_of(node.target).second) return false;
  const auto is_unused = [](const NamedArgument& argument) {
    return argument.name == "train" && is_false(argument.value);
  };
  return record.name != "dropout" || std::ranges::none_of(node.arguments, is_unused);
}

std::string_view record_name(const OpRecord& record, const NodePart& node, const NamedArgument& argument) {
  const auto operands = importing::words_of(record.operands);
  const bool is_written = record.name != op_of(node.target).second && &argument == node.arguments.data();
  return is_written && argument.name == "self" && !operands.empty() ? operands.front() : argument.name;
}

const GraphPart* wrapped_graph(const NodePart& node) {
  const auto& arguments = node.arguments;
  if (node.target == no_grad && arguments.size() >= 2 && arguments[0].value.kind == Argument::Kind::boolean)
    return arguments[1].value.graph.get();
  // The arguments are the device, the dtype, whether it is enabled, whether casts are cached, and the graph.
  if (node.target == autocast && arguments.size() >= 5 && is_false(arguments[2].value))
    return arguments[4].value.graph.get();
  return nullptr;
}

bool is_harmless(const NamedArgument& argument) {
  using Kind = Argument::Kind;
  constexpr std::string_view names[] = {"device", "memory_format", "pin_memory", "non_blocking", "copy"};
  constexpr std::int64_t strided = 7;
  const Argument& value = argument.value;
  return value.kind == Kind::none || value.kind == Kind::harmless ||
         (value.kind == Kind::layout && value.integer == strided) ||
         std::ranges::find(names, argument.name) != std::end(names);
}

ProgramAccesses check_program(const ExportedProgram& program, const importing::OpTable& ops,
                              const std::string& file) {
  Check check(ops);
  check.signature(program);
  check.graph(program);
  check.report(file);
  return check.take_accesses();
}

std::string node_path(const NodePart& node) {
  // Modules are separated by slashes; a number belongs to its list: "layers.0.attn" is "layers.0/attn".
  std::string path = "/";
  const std::string& module = node.module;
  for (std::size_t i = 0; i < module.size(); ++i) {
    const bool is_number = i + 1 < module.size() && std::isdigit(static_cast<unsigned char>(module[i + 1])) != 0;
    path += module[i] == '.' && !is_number ? '/' : module[i];
  }
  return path + (module.empty() ? "" : "/") + node.name;
}

}  // namespace lathe::pt2
