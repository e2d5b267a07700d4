#pragma once

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

/// Tracks which values of a graph share storage, for writes in place. A write is safe if no other value shares
/// the storage: it then defines a new value, to which all names of the old one refer.
class StorageOwners {
 public:
  /// Notes the results of a node. `record` is null for a node with a subgraph.
  void add(const NodePart& node, const importing::OpRecord* record);
  /// Notes a write in place. Returns the names of the value that is written; none if other values share its storage.
  std::vector<std::string> write(const NodePart& node);

 private:
  std::map<std::string, std::set<std::string>, std::less<>> names_;  ///< all names of an owned value, by each name
};

}  // namespace lathe::pt2
