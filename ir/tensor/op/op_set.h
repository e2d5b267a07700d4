#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor/op/op_ref.h"

namespace lathe::ir {

/// The ops that IR text may use: Lathe's and user-defined ones. Keeps their records alive.
///
///   const ir::Graph graph = ir::parse_graph(text, ir::OpSet{swish, huber});
class OpSet {
 public:
  OpSet() = default;
  /// Holds Lathe's ops and these. Throws UserError [op_name] for a name without a dot, which is reserved for Lathe,
  /// and for two ops of the same name.
  OpSet(std::initializer_list<OpRef> ops);
  void add(const OpRef& op);

  /// Returns the record of this name, or nullptr.
  const Op* find(std::string_view name) const;
  /// Returns all names, those of Lathe first.
  std::vector<std::string_view> names() const;

 private:
  std::map<std::string, OpRef, std::less<>> own_;
};

}  // namespace lathe::ir
