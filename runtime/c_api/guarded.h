#pragma once

#include <lathe/lathe_c.h>

#include <string_view>

namespace lathe::c_api {

/// Keeps the exception being handled as the thread's last error, and returns its status.
lathe_status record_error() noexcept;

/// Calls `body` and returns LATHE_OK, or the status of its exception, which lathe_last_error() then describes.
template <class Body>
lathe_status guarded(const Body& body) noexcept {
  try {
    body();
    return LATHE_OK;
  } catch (...) {
    return record_error();
  }
}

/// Throws UserError [null_argument] for the argument of this name.
[[noreturn]] void throw_null(std::string_view name);

/// Returns what a pointer that must not be NULL points to. Throws UserError [null_argument].
template <class T>
T& needed(T* pointer, std::string_view name) {
  if (!pointer) throw_null(name);
  return *pointer;
}

/// Returns the text of a string that must not be NULL. Throws UserError [null_argument].
inline std::string_view text_of(const char* text, std::string_view name) { return &needed(text, name); }

}  // namespace lathe::c_api
