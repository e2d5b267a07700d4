#include "ir/support/error.h"

#include <fmt/core.h>

namespace lathe {

namespace {
std::string with_hint(std::string text, std::string_view label, std::string_view hint) {
  if (!label.empty()) text += fmt::format("  [{}]", label);
  if (!hint.empty()) text += fmt::format("\n  {}", hint);
  return text;
}
}  // namespace

UserError::UserError(const Location& at, std::string_view op, std::string_view message, std::string_view label,
                     std::string_view hint)
    : Error(with_hint(fmt::format("{}: {}: {}", at.to_string(), op, message), label, hint)),
      location_(at),
      label_(label) {}

UserError::UserError(std::string_view message, std::string_view label, std::string_view hint)
    : Error(with_hint(std::string(message), label, hint)), label_(label) {}

UserError UserError::with_note(std::string_view note) const { return {*this, fmt::format("{}\n  {}", what(), note)}; }

ParseError::ParseError(std::string_view file, int line, int column, std::string_view message, std::string_view hint)
    : Error(with_hint(fmt::format("{}:{}:{}: {}", file, line, column, message), {}, hint)),
      line_(line),
      column_(column) {}

InternalError::InternalError(std::string_view message)
    : Error(fmt::format("internal error in Lathe: {} (please report this)", message)) {}

void detail::assert_failed(const char* condition, const char* file, int line) {
  throw InternalError(fmt::format("{}:{}: {}", file, line, condition));
}

}  // namespace lathe
