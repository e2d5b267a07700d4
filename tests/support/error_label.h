#pragma once

#include <string>

#include "ir/support/error.h"

namespace lathe::test {

/// The label of the UserError that `f` throws; "" where it throws none. The text goes to `text`.
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
