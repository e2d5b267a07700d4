#include "ir/tensor/graph.h"

#include "ir/tensor/op/op.h"

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

}  // namespace lathe::ir
