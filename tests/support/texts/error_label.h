#pragma once

#include <string>

#include "ir/support/error.h"

namespace lathe::test {

/// Returns the label of the UserError that `f` throws; "" if it throws none. Writes its message to `text`.
template <class F>
std::string error_label(const F& f, std::string* text = nullptr) {
  try {
    f();
  } catch (const UserError& error) {
    if (text) *text = error.what();
    return error.label();
  }
  return {};
}

}  // namespace lathe::test
