#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ops/loop_parts.h"

namespace lathe {

/// Builds a loop over segments: its operands in the graph around it, and its body, which has an argument for each.
/// Operands are added first, then the body is opened. An operand that is added twice has one argument.
class SegmentBody {
 public:
  explicit SegmentBody(std::string_view name) : builder_(name) {}

  /// Each adds an operand and returns its number among those of its kind. `like`: the argument of the loop in the
  /// body that has the element, for its name and location; `type`: that of an element.
  int carry(ir::ValueId operand, const ir::Node& like, const ir::TensorType& type);
  int sequence(ir::ValueId operand, const ir::Node& like, const ir::TensorType& type);
  int invariant(ir::ValueId operand, const ir::Node& like, const ir::TensorType& type);

  /// Declares the arguments.
  void open();
  ir::GraphBuilder& builder() { return builder_; }
  ir::Value carry(int number) const { return ir::Value(carries_[at(number)].inside.value()); }
  ir::Value sequence(int number) const { return ir::Value(sequences_[at(number)].inside.value()); }
  ir::Value invariant(int number) const { return ir::Value(invariants_[at(number)].inside.value()); }
  /// Declares an output with a free name and returns its number.
  int output(const std::string& name, const ir::Value& value);

  /// Returns the finished body, without nodes that it does not need.
  ir::Body close();
  /// Returns the operands of the loop, in order.
  std::vector<ir::ValueId> operands() const;
  std::int64_t sequences() const { return static_cast<std::int64_t>(sequences_.size()); }

 private:
  struct Operand {
    ir::ValueId outside;
    std::string name;
    Location loc;
    ir::TensorType type;
    std::optional<ir::Value> inside = {};
  };

  static std::size_t at(int number) { return static_cast<std::size_t>(number); }
  static int add(std::vector<Operand>& operands, ir::ValueId operand, const ir::Node& like,
                 const ir::TensorType& type, bool share);

  ir::GraphBuilder builder_;
  std::vector<Operand> carries_, sequences_, invariants_;
};

}  // namespace lathe
