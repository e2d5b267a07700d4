#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ir/tensor/builder.h"
#include "ir/tensor/node_map.h"

namespace lathe::ir {

/// The body of a loop and its gradient in one graph. The nodes of the body keep their ids.
struct BodyGradient {
  std::shared_ptr<GraphBuilder> builder;
  int forward = 0;  ///< nodes with smaller ids are those of the body
  /// Inputs: the gradients that arrive at the next value of each carry, and at each output. Nothing where none does.
  std::vector<std::optional<Value>> next = {}, outputs = {};
  std::vector<std::optional<Value>> arguments = {};  ///< the gradient of each argument; nothing if none arrives

  bool is_forward(ValueId id) const { return id.index < forward; }
};

/// Differentiates a body. `carries` and `outputs`: where gradients arrive from outside of the loop. Gradients at
/// other carries arrive from later iterations, so `next` may have more of them.
BodyGradient differentiate_body(const Graph& body, std::vector<bool> carries, const std::vector<bool>& outputs);

/// Chooses the values of the body that the gradient reads: which ones the forward loop saves, and which ones are
/// computed again from saved values and arguments.
class SavedForGradient {
 public:
  explicit SavedForGradient(const BodyGradient& gradient);

  /// Includes a value of the graph and all that it is computed from.
  void need(ValueId id);
  /// Whether a value of the body is saved, or would be if it was needed. Arguments other than carries are not.
  bool is_saved(ValueId id) const;
  /// Returns the needed values of the body that are saved, in order.
  std::vector<ValueId> saved() const;
  /// Whether the gradient's body contains a copy of the node, which is not saved.
  bool is_computed(ValueId id) const { return needed_[id] && !is_saved(id); }
  bool is_needed(ValueId id) const { return needed_[id]; }

 private:
  const BodyGradient& gradient_;
  NodeMap<bool> needed_;
};

}  // namespace lathe::ir
