#include "models/import/pt2/storage_owners.h"

#include <algorithm>

namespace lathe::pt2 {

namespace {

/// Ops whose result may share the storage of an operand. So may the others that only move elements of operand 0.
constexpr std::string_view sharing_ops[] = {"view_as",
                                            "broadcast_tensors",
                                            "reshape_as",
                                            "swapaxes",
                                            "mT",
                                            "mH",
                                            "adjoint",
                                            "movedim.int",
                                            "movedim.intlist",
                                            "expand_as",
                                            "unflatten.int",
                                            "diagonal",
                                            "as_strided",
                                            "unfold",
                                            "split.Tensor",
                                            "split.sizes",
                                            "split_with_sizes",
                                            "tensor_split.sections",
                                            "tensor_split.indices",
                                            "hsplit.int",
                                            "hsplit.array",
                                            "vsplit.int",
                                            "vsplit.array",
                                            "dsplit.int",
                                            "dsplit.array",
                                            "chunk",
                                            "unbind.int",
                                            "atleast_1d",
                                            "atleast_2d",
                                            "atleast_3d",
                                            "atleast_1d.Sequence",
                                            "atleast_2d.Sequence",
                                            "atleast_3d.Sequence",
                                            "meshgrid",
                                            "meshgrid.indexing",
                                            "cartesian_prod",
                                            "contiguous",
                                            "alias",
                                            "lift_fresh",
                                            "real",
                                            "imag",
                                            "view_as_real",
                                            "view_as_complex",
                                            "_conj",
                                            "detach",
                                            "detach_",
                                            "_to_copy",
                                            "to.dtype",
                                            "to.dtype_layout",
                                            "to.device",
                                            "to.other",
                                            "type_as",
                                            "dropout",
                                            "pad"};

/// Ops that move elements of operand 0 to storage of their own.
constexpr std::string_view copying_ops[] = {"repeat",       "tile",   "flip", "index_select",
                                            "index.Tensor", "gather", "item", "_local_scalar_dense"};

bool may_share(const importing::OpRecord& record) {
  if (std::ranges::find(copying_ops, record.name) != std::end(copying_ops)) return false;
  return record.moves == importing::Moves::first ||
         std::ranges::find(sharing_ops, record.own_name()) != std::end(sharing_ops);
}

/// Ops whose result is all of their operand.
constexpr std::string_view same_ops[] = {"alias", "detach", "lift_fresh"};
/// Ops whose result is all of their operand unless they convert or copy it.
constexpr std::string_view cast_ops[] = {"to.dtype", "to.dtype_layout", "to.device", "to.other", "type_as"};

/// Returns whether the result of a node is its operand 0, with all its elements in the same storage.
bool is_operand(const NodePart& node, const importing::OpRecord& record, const GraphPart& graph) {
  if (std::ranges::find(same_ops, record.own_name()) != std::end(same_ops)) return true;
  if (std::ranges::find(cast_ops, record.own_name()) == std::end(cast_ops)) return false;
  const auto copies = [](const NamedArgument& argument) {
    return argument.name == "copy" && argument.value.kind == Argument::Kind::boolean && argument.value.integer != 0;
  };
  const auto from = graph.tensors.find(node.arguments[0].value.text), to = graph.tensors.find(node.results[0].text);
  return std::ranges::none_of(node.arguments, copies) && from != graph.tensors.end() && to != graph.tensors.end() &&
         from->second.dtype == to->second.dtype;
}

}  // namespace

std::string functional_target(std::string_view target) {
  constexpr std::string_view prefix = "torch.ops.aten.";
  const std::size_t dot = target.rfind('.');
  if (!target.starts_with(prefix) || dot < prefix.size() || dot + 1 == target.size()) return "";
  if (target[dot - 1] != '_' || target[dot - 2] == '_') return "";
  return std::string(target.substr(0, dot - 1)) + std::string(target.substr(dot));
}

StorageOwners::StorageOwners(const GraphPart& graph) : graph_(graph) {
  const auto read = [&](const Argument& argument, std::size_t at) {
    if (argument.kind == Argument::Kind::value) last_reads_[argument.text] = at;
    for (const std::string& name : argument.texts) last_reads_[name] = at;
  };
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    for (const NamedArgument& argument : graph.nodes[i].arguments) read(argument.value, i);
  for (const Argument& output : graph.outputs) read(output, graph.nodes.size());
  for (const Argument& input : graph.inputs) {
    if (input.kind == Argument::Kind::value) define(input.text, Storage::Kind::input);
    for (const std::string& name : input.texts) define(name, Storage::Kind::input);
  }
}

void StorageOwners::define(const std::string& name, Storage::Kind kind) {
  shared_by_[name] = {storages_.size()};
  storages_.push_back({.kind = kind, .names = {name}});
}

bool StorageOwners::is_read_later(const std::string& name) const {
  const auto last = last_reads_.find(name);
  return last != last_reads_.end() && last->second >= at_;
}

std::set<std::size_t> StorageOwners::storages_of(const NodePart& node) const {
  std::set<std::size_t> all;
  const auto note = [&](const std::string& name) {
    if (!graph_.tensors.contains(name)) return;  // a size
    if (const auto found = shared_by_.find(name); found != shared_by_.end())
      all.insert(found->second.begin(), found->second.end());
  };
  for (const NamedArgument& argument : node.arguments) {
    if (argument.value.kind == Argument::Kind::value) note(argument.value.text);
    for (const std::string& name : argument.value.texts) note(name);
  }
  return all;
}

void StorageOwners::add(const NodePart& node, const importing::OpRecord* record) {
  ++at_;
  const bool shares = !record || may_share(*record);
  const std::set<std::size_t> from = shares ? storages_of(node) : std::set<std::size_t>();
  // A write to a detached tensor changes the other names of its storage, but not their gradients. Buffers have none.
  const auto is_detached = [&] {
    return record->own_name() == "detach" && storages_[*from.begin()].kind != Storage::Kind::kept;
  };
  if (shares && record && from.size() == 1 && !node.results.empty() && is_operand(node, *record, graph_) &&
      !is_detached()) {
    Storage& storage = storages_[*from.begin()];
    const std::string& name = node.results[0].text;
    shared_by_[name] = from;
    (storage.names.contains(node.arguments[0].value.text) ? storage.names : storage.views).insert(name);
    return;
  }
  if (record && from.size() == 1 && !node.results.empty() &&
      (record->name == "slice.Tensor" || record->name == "select.int"))
    slices_[node.results[0].text] = &node;
  const auto note = [&](const std::string& name) {
    if (!shares) return define(name, Storage::Kind::temporary);
    shared_by_[name] = from;
    for (const std::size_t storage : from) storages_[storage].views.insert(name);
  };
  for (const Argument& result : node.results) {
    if (result.kind == Argument::Kind::value) note(result.text);
    for (const std::string& name : result.texts) note(name);
  }
}

std::vector<const NodePart*> StorageOwners::slices_to(const std::string& name, const Storage& storage) const {
  std::vector<const NodePart*> slices;
  for (const std::string* at = &name; !storage.names.contains(*at); at = &slices.back()->arguments[0].value.text) {
    const auto found = slices_.find(*at);
    if (found == slices_.end() || slices.size() == slices_.size()) return {};  // also for a file that defines a cycle
    slices.push_back(found->second);
  }
  std::ranges::reverse(slices);
  return slices;
}

WrittenValues StorageOwners::write_whole(std::size_t storage, const std::string& result) {
  std::set<std::string>& names = storages_[storage].names;
  WrittenValues written{.names = {names.begin(), names.end()}};
  names.insert(result);
  shared_by_[result] = {storage};
  return written;
}

WrittenValues StorageOwners::write(const NodePart& node) {
  ++at_;
  if (node.arguments.empty() || node.results.empty()) return {};
  const std::string &target = node.arguments[0].value.text, &result = node.results[0].text;
  const auto found = shared_by_.find(target);
  if (found == shared_by_.end() || found->second.empty()) return {};
  const std::set<std::size_t> shared = found->second;
  const Storage& first = storages_[*shared.begin()];
  const bool is_whole = shared.size() == 1 && first.names.contains(target);
  const auto slices = shared.size() == 1 ? slices_to(target, first) : std::vector<const NodePart*>();
  const auto is_on_path = [&](const std::string& name) {
    return std::ranges::any_of(slices, [&](const NodePart* slice) { return slice->results[0].text == name; });
  };
  bool is_rest_read = std::ranges::any_of(slices, [&](const NodePart* slice) {
    const std::string& name = slice->results[0].text;
    return name != target && is_read_later(name);
  });
  for (const std::size_t number : shared) {
    const Storage& storage = storages_[number];
    const auto is_seen = [&](const std::string& name) {
      return name != target && !is_on_path(name) && is_read_later(name);
    };
    if (storage.kind == Storage::Kind::input || std::ranges::any_of(storage.views, is_seen)) return {};
    is_rest_read = is_rest_read || storage.kind == Storage::Kind::kept || std::ranges::any_of(storage.names, is_seen);
  }
  if (is_whole) return write_whole(*shared.begin(), result);
  if (is_rest_read && slices.empty()) return {};
  if (is_rest_read) {
    Storage& storage = storages_[*shared.begin()];
    storage.views.insert(result);
    shared_by_[result] = shared;
    slices_[result] = slices.back();
    return {{target}, slices, {storage.names.begin(), storage.names.end()}};
  }
  define(target, Storage::Kind::temporary);
  storages_.back().names.insert(result);
  shared_by_[result] = shared_by_[target];
  return {.names = {target}};
}

std::set<std::string, std::less<>> StorageOwners::reads() const {
  std::set<std::string, std::less<>> names;
  for (const auto& [name, at] : last_reads_) names.insert(name);
  return names;
}

}  // namespace lathe::pt2
