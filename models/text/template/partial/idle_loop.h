#pragma once

#include <optional>
#include <vector>

#include "models/text/template/syntax/ast.h"

namespace lathe::jinja {

class Interpreter;

/// A loop whose iterations have no effect while some attributes of namespaces are False. Its body consists of
/// {% set %} of sums of numbers, lengths and the index, and of {% if NAMESPACE.ATTRIBUTE and ..%} without else.
class IdleLoop {
 public:
  static std::optional<IdleLoop> find(const For& loop);
  /// Returns whether the attributes are False now. The loop's frame must be the current one.
  bool idles(const Interpreter& interpreter) const;

 private:
  std::vector<const Attribute*> guards_;
};

}  // namespace lathe::jinja
