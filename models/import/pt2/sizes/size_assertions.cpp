#include "models/import/pt2/sizes/size_assertions.h"

#include <fmt/core.h>

namespace lathe::pt2 {

using Relation = ir::DimCheck::Relation;

void SizeAssertions::note(const NodePart& node, const std::vector<importing::Value>& operands) {
  constexpr std::string_view prefix = "_operator.";
  if (!node.target.starts_with(prefix) || operands.size() != 2 || node.results.empty()) return;
  const std::string_view op = std::string_view(node.target).substr(prefix.size());
  const auto a = operands[0].dims(), b = operands[1].dims();
  if (!a || !b || a->elements.size() != 1 || b->elements.size() != 1) return;
  const Dim &left = a->elements[0], &right = b->elements[0];
  if ((left - right).value()) return;  // known at import
  const auto add = [&](const Dim& low, const Dim& high, Relation relation) {
    comparisons_.insert_or_assign(node.results[0].text, Comparison{low, high, relation});
  };
  if (op == "eq") add(left, right, Relation::equal);
  if (op == "le") add(left, right, Relation::at_most);
  if (op == "lt") add(left + Dim(1), right, Relation::at_most);
  if (op == "ge") add(right, left, Relation::at_most);
  if (op == "gt") add(right + Dim(1), left, Relation::at_most);
}

bool SizeAssertions::record(const NodePart& node, const Location& location, const Graph& graph) const {
  if (node.target != "torch.ops.aten._assert_scalar.default" || node.arguments.empty()) return false;
  const auto found = comparisons_.find(node.arguments[0].value.text);
  if (found == comparisons_.end()) return false;
  std::string message = "the program asserts it";
  for (const NamedArgument& argument : node.arguments)
    if (argument.name == "assert_msg" && argument.value.kind == Argument::Kind::text)
      message = fmt::format("the program asserts it: {}", argument.value.text);
  const ir::DimCheck check{.left = found->second.left,
                           .right = found->second.right,
                           .relation = found->second.relation,
                           .loc = location,
                           .op = "_assert_scalar",
                           .label = "import_range",
                           .message = message};
  graph.builder().add_checks({&check, 1});
  return true;
}

}  // namespace lathe::pt2
