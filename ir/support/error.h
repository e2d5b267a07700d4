#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "ir/support/location.h"

namespace lathe {

/// The base of everything that Lathe throws. what() is the full human-readable text.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An error in the user's model, arguments or data. what() reads
///   mha.cpp:14: view: the elements of ... do not fit ...  [view_numel]
///     did you mean d_k=64?
class UserError : public Error {
 public:
  /// `label` is the name of the violated rule in docs and tests; `hint` suggests a fix and may be empty.
  UserError(const Location& at, std::string_view op, std::string_view message, std::string_view label,
            std::string_view hint = {});
  /// For errors without a model location: files, arguments, bindings.
  UserError(std::string_view message, std::string_view label, std::string_view hint = {});

  /// Returns the same error with one more line of text: "  in model.lathe:7".
  UserError with_note(std::string_view note) const;

  const std::string& label() const { return label_; }
  const Location& location() const { return location_; }

 private:
  UserError(const UserError& base, const std::string& text)
      : Error(text), location_(base.location_), label_(base.label_) {}

  Location location_;
  std::string label_;
};

/// A syntax error in text (IR, JSON, a file header): "model.lathe:3:17: expected ...".
class ParseError : public Error {
 public:
  ParseError(std::string_view file, int line, int column, std::string_view message, std::string_view hint = {});
  int line() const { return line_; }
  int column() const { return column_; }

 private:
  int line_;
  int column_;
};

/// A bug in Lathe itself. It should never reach users; tests fail on it.
class InternalError : public Error {
 public:
  explicit InternalError(std::string_view message);
  const std::string& message() const { return message_; }  ///< without the request to report it

 private:
  std::string message_;
};

/// Throws InternalError("<file>:<line>: <condition>") unless `condition` holds.
#define LATHE_ASSERT(condition)                                                       \
  do {                                                                                \
    if (!(condition)) ::lathe::detail::assert_failed(#condition, __FILE__, __LINE__); \
  } while (false)

namespace detail {
[[noreturn]] void assert_failed(const char* condition, const char* file, int line);
}

}  // namespace lathe
