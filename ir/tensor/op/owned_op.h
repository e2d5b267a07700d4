#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "ir/tensor/builder.h"
#include "ir/tensor/op/op.h"
#include "ir/tensor/op/op_ref.h"

namespace lathe::ir {

/// What a program says of an op of its own: the pieces of a record, with functions that may hold state. The texts of
/// `attrs` are copied.
struct OpDefinition {
  std::string name;   ///< with a dot: "my.swish"
  std::string doc;    ///< one line
  Location loc = {};  ///< where the program makes it
  Arity arity{1, 1};
  std::vector<AttrSpec> attrs = {};
  std::vector<std::string> labels = {};
  std::function<TensorType(const InferContext&)> infer;
  /// Pure, and of exactly the type that `infer` gives.
  std::function<Value(GraphBuilder&, const Node&, std::span<const Value>)> expand;
  MixedPrecision precision = MixedPrecision::expansion;
  /// A rule; FromExpansion; or the reason why there is no gradient.
  std::variant<FromExpansion, std::function<void(const GradientContext&)>, std::string> gradient = FromExpansion{};
  std::vector<Sample> samples = {};
};

/// Whether a program may give this name to an op: words of letters, digits and underscores, with dots between them,
/// one at least. No op of Lathe has a dot in its name.
bool is_own_op_name(std::string_view name);

/// A record that a program makes while it runs: a composite of other ops. It is no part of all_ops(); nodes and sets
/// of ops that have it keep it alive.
class OwnedOp final : public Op {
 public:
  /// Throws UserError [op_name], at the definition's location, for a name that is_own_op_name() refuses.
  static OpRef make(OpDefinition definition);

  const OpDefinition& definition() const { return *definition_; }

 private:
  /// What the record's views refer to.
  struct Views {
    std::deque<std::string> texts;
    std::vector<AttrSpec> attrs;
    std::vector<std::string_view> labels;
  };
  OwnedOp(std::unique_ptr<const OpDefinition> definition, std::unique_ptr<const Views> views);
  static std::unique_ptr<const Views> views_of(const OpDefinition& definition);

  friend class OpRef;
  mutable std::atomic<std::size_t> references_ = 0;  // the last of them deletes it

  std::unique_ptr<const OpDefinition> definition_;
  std::unique_ptr<const Views> views_;
};

}  // namespace lathe::ir
