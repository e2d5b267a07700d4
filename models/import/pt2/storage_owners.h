#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/import/op_table.h"
#include "models/import/pt2/program/exported_program.h"

namespace lathe::pt2 {

/// Returns the target of the op without an effect on its operand: "torch.ops.aten.relu.default" for
/// "torch.ops.aten.relu_.default"; empty for a target that does not write in place.
std::string functional_target(std::string_view target);

/// The values that a write in place changes.
struct WrittenValues {
  std::vector<std::string> names;             ///< of the written value
  std::vector<const NodePart*> slices = {};   ///< of a part: slices and selections, from the whole value to the part
  std::vector<std::string> whole_names = {};  ///< of the value that a part belongs to
};

/// Tracks which values of a graph share storage, for writes in place. A write to a whole value is safe if no other
/// value that shares the storage is read after it: it then defines a new value, to which all names of the old one
/// refer. A write to a part is safe if the rest is not read after it, or if the part is a slice, from which the whole
/// value is made again. Inputs are not written, but for those with own storage.
class StorageOwners {
 public:
  explicit StorageOwners(const GraphPart& graph);

  /// Notes an input with storage of its own, such as a buffer, which keeps what is written.
  void own(const std::string& name) { define(name, Storage::Kind::kept); }
  /// Notes the results of the next node. `record` is null for a node with a subgraph.
  void add(const NodePart& node, const importing::OpRecord* record);
  /// Notes the next node, a write in place. Returns what is written; no names if other values that share its storage
  /// are read later, or if it has no storage of its own.
  WrittenValues write(const NodePart& node);
  /// Returns the values that nodes or outputs read.
  std::set<std::string, std::less<>> reads() const;

 private:
  struct Storage {
    enum class Kind : std::uint8_t { input, kept, temporary };
    Kind kind = Kind::temporary;
    std::set<std::string> names;       ///< of the value that is all of it
    std::set<std::string> views = {};  ///< values that may be parts of it
  };
  void define(const std::string& name, Storage::Kind kind);
  bool is_read_later(const std::string& name) const;
  WrittenValues write_whole(std::size_t storage, const std::string& result);
  std::vector<const NodePart*> slices_to(const std::string& name, const Storage& storage) const;
  std::set<std::size_t> storages_of(const NodePart& node) const;

  const GraphPart& graph_;
  std::map<std::string, std::size_t, std::less<>> last_reads_;  ///< numbers of nodes; those of outputs are larger
  std::size_t at_ = 0;                                          ///< the next node
  std::vector<Storage> storages_;
  std::map<std::string, std::set<std::size_t>, std::less<>> shared_by_;  ///< storages that a value may share
  std::map<std::string, const NodePart*, std::less<>> slices_;           ///< nodes by the slices that they return
};

}  // namespace lathe::pt2
