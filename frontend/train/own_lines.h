#pragma once

#include "ir/tensor/builder.h"

namespace lathe::detail {

/// While alive, DSL functions build ops at their own lines, in the current scope, instead of the line of an enclosing
/// CallSite: for functions of the user that the library calls.
class OwnLines {
 public:
  explicit OwnLines(ir::GraphBuilder& builder)
      : at_(builder, Location("", builder.location().line(), builder.location().scope())) {}

 private:
  ir::GraphBuilder::At at_;
};

}  // namespace lathe::detail
