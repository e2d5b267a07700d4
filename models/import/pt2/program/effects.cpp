#include "models/import/pt2/program/effects.h"

#include <algorithm>
#include <set>

namespace lathe::pt2 {

namespace {

constexpr std::string_view with_token = "torch.ops.higher_order.with_effects";

/// Ops without results.
constexpr std::string_view removable[] = {"torch.ops.aten._print.default",
                                          "torch.ops.aten._linalg_check_errors.default"};

bool is_removable(const NodePart& node) {
  return std::ranges::find(removable, called_op(node)) != std::end(removable);
}

using Names = std::set<std::string, std::less<>>;

bool is_in(const Names& names, const Argument& value) {
  return value.kind == Argument::Kind::value && names.contains(value.text);
}

}  // namespace

std::string_view called_op(const NodePart& node) {
  // The arguments are the token, the op, and the operands of the op.
  const bool has_op =
      node.target == with_token && node.arguments.size() > 1 && node.arguments[1].value.kind == Argument::Kind::op;
  return has_op ? std::string_view(node.arguments[1].value.text) : std::string_view(node.target);
}

void remove_effects(ExportedProgram& program) {
  GraphPart& graph = program.graph;
  Names tokens;
  for (const InputSpec& input : program.inputs)
    if (input.kind == InputSpec::Kind::token) tokens.insert(input.target);
  for (const NodePart& node : graph.nodes)
    if (node.target == with_token && !node.results.empty()) tokens.insert(node.results[0].text);
  std::erase_if(graph.nodes, is_removable);
  const auto takes_token = [&](const NodePart& node) {
    return std::ranges::any_of(node.arguments,
                               [&](const NamedArgument& argument) { return is_in(tokens, argument.value); });
  };
  if (std::ranges::any_of(graph.nodes, takes_token)) return;
  std::erase_if(graph.inputs, [&](const Argument& input) { return is_in(tokens, input); });
  std::erase_if(graph.outputs, [&](const Argument& output) { return is_in(tokens, output); });
  std::erase_if(program.inputs, [](const InputSpec& input) { return input.kind == InputSpec::Kind::token; });
  std::erase_if(program.outputs, [](const OutputSpec& output) { return output.target == "token"; });
}

}  // namespace lathe::pt2
