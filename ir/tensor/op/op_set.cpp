#include "ir/tensor/op/op_set.h"

#include <fmt/core.h>

#include "ir/tensor/op/owned_op.h"

namespace lathe::ir {

OpSet::OpSet(std::initializer_list<OpRef> ops) {
  for (const OpRef& op : ops) add(op);
}

void OpSet::add(const OpRef& op) {
  const std::string_view name = op->name.value;
  if (!is_own_op_name(name))
    throw UserError(fmt::format("'{}' is no name for an op of a program", name), "op_name",
                    "the ops of Lathe are in every OpSet; a program's own have a dot in their names");
  const OpRef& held = own_.emplace(name, op).first->second;
  if (held != op)
    throw UserError(fmt::format("there are two ops named {}", name), "op_name",
                    "make an op once and use it everywhere, or give it another name");
}

const Op* OpSet::find(std::string_view name) const {
  if (const Op* op = find_op(name)) return op;
  const auto found = own_.find(name);
  return found == own_.end() ? nullptr : static_cast<const Op*>(found->second);
}

std::vector<std::string_view> OpSet::names() const {
  std::vector<std::string_view> all;
  for (const Op* op : all_ops()) all.push_back(op->name.value);
  for (const auto& [name, op] : own_) all.push_back(name);
  return all;
}

}  // namespace lathe::ir
