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

/// The definition of a user-defined op: the fields of a record, with functions that may hold state. The texts of
/// `attrs` are copied.
struct OpDefinition {
  std::string name;   ///< with a dot: "my.swish"
  std::string doc;    ///< one line
  Location loc = {};  ///< location of the definition
  Arity arity{1, 1};
  std::vector<AttrSpec> attrs = {};
  std::vector<std::string> labels = {};
  std::function<TensorType(const InferContext&)> infer;
  /// Must be pure and return exactly the type that `infer` returns.
  std::function<Value(GraphBuilder&, const Node&, std::span<const Value>)> expand;
  MixedPrecision precision = MixedPrecision::expansion;
  /// A rule, FromExpansion, or the reason why there is no gradient.
  std::variant<FromExpansion, std::function<void(const GradientContext&)>, std::string> gradient = FromExpansion{};
  std::vector<Sample> samples = {};
};

/// Returns whether a user-defined op may have this name: words of letters, digits and underscores, joined by at least
/// one dot. Names of Lathe's ops contain no dot.
bool is_own_op_name(std::string_view name);

/// A record created at run time: a composite of other ops. Not part of all_ops(); nodes and op sets that refer to it
/// keep it alive.
class OwnedOp final : public Op {
 public:
  /// Throws UserError [op_name], at the definition's location, for a name that is_own_op_name() rejects.
  static OpRef make(OpDefinition definition);

  const OpDefinition& definition() const { return *definition_; }

 private:
  /// Storage that the record's views refer to.
  struct Views {
    std::deque<std::string> texts;
    std::vector<AttrSpec> attrs;
    std::vector<std::string_view> labels;
  };
  OwnedOp(std::unique_ptr<const OpDefinition> definition, std::unique_ptr<const Views> views);
  static std::unique_ptr<const Views> views_of(const OpDefinition& definition);

  friend class OpRef;
  mutable std::atomic<std::size_t> references_ = 0;  // the last reference deletes the record

  std::unique_ptr<const OpDefinition> definition_;
  std::unique_ptr<const Views> views_;
};

}  // namespace lathe::ir
