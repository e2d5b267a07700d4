#include "ir/support/error.h"

#include <fmt/core.h>

#include "ir/support/visible.h"

namespace lathe {

namespace {
/// Returns the full text of an error. Names and paths may be untrusted, so control characters are escaped, and the
/// message is one line.
std::string with_hint(std::string_view text, std::string_view label, std::string_view hint) {
  std::string result = visible(text);
  if (!label.empty()) result += fmt::format("  [{}]", label);
  if (!hint.empty()) result += fmt::format("\n  {}", visible_lines(hint));
  return result;
}

/// Returns the line that names the module of a location, such as "encoder.0.self"; empty at the top.
std::string in_module(const Location& at) {
  return at.scope().empty() ? std::string() : fmt::format("\n  in {}", visible(at.scope()));
}
}  // namespace

UserError::UserError(const Location& at, std::string_view op, std::string_view message, std::string_view label,
                     std::string_view hint)
    : Error(with_hint(fmt::format("{}: {}: {}", at.to_string(), op, message), label, hint) + in_module(at)),
      location_(at),
      label_(label) {}

UserError::UserError(std::string_view message, std::string_view label, std::string_view hint)
    : Error(with_hint(message, label, hint)), label_(label) {}

UserError UserError::with_note(std::string_view note) const {
  return {*this, fmt::format("{}\n  {}", what(), visible(note))};
}

ParseError::ParseError(std::string_view file, int line, int column, std::string_view message, std::string_view hint)
    : Error(with_hint(fmt::format("{}:{}:{}: {}", file, line, column, message), {}, hint)),
      line_(line),
      column_(column) {}

InternalError::InternalError(std::string_view message)
    : Error(fmt::format("internal error in Lathe: {} (please report this)", visible_lines(message))),
      message_(message) {}

void detail::assert_failed(const char* condition, const char* file, int line) {
  throw InternalError(fmt::format("{}:{}: {}", file, line, condition));
}

}  // namespace lathe
