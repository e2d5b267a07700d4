#pragma once

#include "models/text/template/interpreter.h"
#include "models/text/template/values/failure.h"

namespace lathe::jinja {

template <class Action>
auto Interpreter::located(Extent extent, const Action& action) -> decltype(action()) {
  try {
    return action();
  } catch (const Failure& failure) {
    throw TemplateError(source_.location(extent), source_.quote(extent), failure);
  }
}

}  // namespace lathe::jinja
