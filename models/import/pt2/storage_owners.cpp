#include "models/import/pt2/storage_owners.h"

#include <algorithm>

#include "models/import/pt2/check_program.h"

namespace lathe::pt2 {

namespace {

/// Ops whose result may share the storage of an operand. So may the others that only move elements of operand 0.
constexpr std::string_view sharing_ops[] = {
    "view_as",     "broadcast_tensors", "reshape_as",  "swapaxes",         "mT",
    "movedim.int", "movedim.intlist",   "expand_as",   "unflatten.int",    "diagonal",
    "unfold",      "split.Tensor",      "split.sizes", "split_with_sizes", "chunk",
    "unbind.int",  "contiguous",        "alias",       "lift_fresh",       "_conj",
    "detach",      "detach_",           "_to_copy",    "to.dtype",         "to.dtype_layout",
    "to.device",   "to.other",          "type_as",     "dropout",          "pad"};

bool may_share(const importing::OpRecord& record) {
  return record.moves == importing::Moves::first ||
         std::ranges::find(sharing_ops, record.name) != std::end(sharing_ops);
}

}  // namespace

std::string functional_target(std::string_view target) {
  constexpr std::string_view prefix = "torch.ops.aten.";
  const std::size_t dot = target.rfind('.');
  if (!target.starts_with(prefix) || dot < prefix.size() || dot + 1 == target.size()) return "";
  if (target[dot - 1] != '_' || target[dot - 2] == '_') return "";
  return std::string(target.substr(0, dot - 1)) + std::string(target.substr(dot));
}

void StorageOwners::add(const NodePart& node, const importing::OpRecord* record) {
  const bool shares = !record || may_share(*record);
  const auto disown = [&](const std::string& name) {
    const auto found = names_.find(name);
    if (found == names_.end()) return;
    for (const std::string& each : std::set<std::string>(found->second)) names_.erase(each);
  };
  for (const NamedArgument& argument : node.arguments) {
    if (!shares) break;
    disown(argument.value.text);
    for (const std::string& name : argument.value.texts) disown(name);
  }
  if (shares) return;
  for (const Argument& result : node.results)
    if (result.kind == Argument::Kind::value) names_[result.text] = {result.text};
}

std::vector<std::string> StorageOwners::write(const NodePart& node) {
  if (node.arguments.empty() || node.results.empty()) return {};
  const auto found = names_.find(node.arguments[0].value.text);
  if (found == names_.end()) return {};
  const std::vector<std::string> written(found->second.begin(), found->second.end());
  std::set<std::string> all = found->second;
  all.insert(node.results[0].text);
  for (const std::string& name : all) names_[name] = all;
  return written;
}

}  // namespace lathe::pt2
