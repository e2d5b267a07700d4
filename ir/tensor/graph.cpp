#include "ir/tensor/graph.h"

#include "ir/tensor/op.h"

namespace lathe::ir {

std::vector<ValueId> Graph::arguments() const {
  std::vector<ValueId> found;
  for (const ValueId id : all_values(*this))
    if ((*this)[id].op->as<Argument>()) found.push_back(id);
  return found;
}

ValueId Graph::find_argument(std::string_view argument) const {
  for (const ValueId id : all_values(*this))
    if ((*this)[id].op->as<Argument>() && (*this)[id].name == argument) return id;
  return {};
}

std::vector<ValueId> Graph::results() const {
  std::vector<ValueId> found;
  for (const Output& output : outputs) found.push_back(output.value);
  for (const Update& update : updates) found.push_back(update.value);
  return found;
}

std::vector<std::vector<ValueId>> Graph::users() const {
  std::vector<std::size_t> count(nodes.size(), 0);
  for (const Node& node : nodes)
    for (const ValueId operand : node.operands) ++count[static_cast<std::size_t>(operand.index)];
  std::vector<std::vector<ValueId>> result(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) result[i].reserve(count[i]);
  for (const ValueId id : all_values(*this))
    for (const ValueId operand : (*this)[id].operands) result[static_cast<std::size_t>(operand.index)].push_back(id);
  return result;
}

}  // namespace lathe::ir
