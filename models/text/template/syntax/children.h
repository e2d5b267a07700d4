#pragma once

#include "models/text/template/syntax/ast.h"

namespace lathe::jinja {

/// Calls visit(Expr&) for each direct child expression, in source order.
template <class Visit>
class ChildVisitor {
 public:
  explicit ChildVisitor(const Visit& visit) : visit_(visit) {}

  void operator()(Literal&) const {}
  void operator()(Name&) const {}
  void operator()(ListDisplay& node) const { all(node.items); }
  void operator()(DictDisplay& node) const {
    for (auto& [key, value] : node.items) one(key), one(value);
  }
  void operator()(Attribute& node) const { one(node.object); }
  void operator()(Subscript& node) const { one(node.object), one(node.index); }
  void operator()(SliceExpr& node) const { one(node.object), one(node.start), one(node.stop), one(node.step); }
  void operator()(Call& node) const { one(node.callee), arguments(node.arguments); }
  void operator()(FilterUse& node) const { one(node.subject), arguments(node.arguments); }
  void operator()(TestUse& node) const { one(node.subject), arguments(node.arguments); }
  void operator()(UnaryExpr& node) const { one(node.operand); }
  void operator()(BinaryExpr& node) const { one(node.left), one(node.right); }
  void operator()(Not& node) const { one(node.operand); }
  void operator()(Logical& node) const { one(node.left), one(node.right); }
  void operator()(Comparison& node) const {
    one(node.first);
    for (auto& [op, operand] : node.rest) one(operand);
  }
  void operator()(Concat& node) const { all(node.parts); }
  void operator()(Conditional& node) const { one(node.then), one(node.test), one(node.otherwise); }

 private:
  void one(const ExprPtr& expr) const {
    if (expr) visit_(*expr);
  }
  void all(const std::vector<ExprPtr>& list) const {
    for (const ExprPtr& expr : list) one(expr);
  }
  void arguments(const CallArguments& given) const {
    all(given.positional);
    for (const auto& [name, value] : given.named) one(value);
    one(given.rest);
    one(given.named_rest);
  }

  const Visit& visit_;
};

template <class Visit>
void for_each_child(Expr& expr, const Visit& visit) {
  std::visit(ChildVisitor<Visit>(visit), expr.node);
}

}  // namespace lathe::jinja
