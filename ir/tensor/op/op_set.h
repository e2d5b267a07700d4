#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor/op/op_ref.h"

namespace lathe::ir {

/// The ops that a text may name: those of Lathe, and ops of a program's own. It keeps their records alive.
///
///   const ir::Graph graph = ir::parse_graph(text, ir::OpSet{swish, huber});
class OpSet {
 public:
  OpSet() = default;
  /// The ops of Lathe and these. Throws UserError [op_name] for a name without a dot, which is Lathe's to give, and
  /// for two ops of one name.
  OpSet(std::initializer_list<OpRef> ops);
  void add(const OpRef& op);

  /// The record of this name; nullptr where there is none.
  const Op* find(std::string_view name) const;
  /// The names of all, those of Lathe first.
  std::vector<std::string_view> names() const;

 private:
  std::map<std::string, OpRef, std::less<>> own_;
};

}  // namespace lathe::ir
