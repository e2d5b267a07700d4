#pragma once

#include <string>
#include <string_view>

#include "ir/support/error.h"

namespace lathe::jinja {

/// An expression of a template cannot be evaluated. The interpreter adds the location (TemplateError).
///   [template_raise]        the template called raise_exception
///  [template_undefined]    use of something that is not defined
///  [template_operation]    Python raises TypeError, ValueError, ZeroDivisionError, ...
///  [template_unsafe]       the sandbox forbids it: changing lists and dicts, names with underscores
///  [template_limit]        too much work, output or depth, or too large a number
///  [template_unsupported]  Jinja or Python supports it, this subset does not
class Failure : public UserError {
 public:
  Failure(const std::string& message, std::string_view label, std::string_view hint = {})
      : Failure(Short{shortened(message)}, label, hint) {}
  /// Returns the message in Jinja's or Python's words; only the start of a long one.
  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }

 private:
  struct Short {
    std::string text;
  };
  Failure(const Short& message, std::string_view label, std::string_view hint)
      : UserError(message.text, label, hint), message_(message.text), hint_(hint) {}

  static std::string shortened(const std::string& message) {
    constexpr std::size_t longest = 2000;
    if (message.size() <= longest) return message;
    std::size_t end = longest;
    while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xC0) == 0x80) --end;
    return message.substr(0, end) + "... (" + std::to_string(message.size()) + " bytes)";
  }

  std::string message_, hint_;
};

[[noreturn]] inline void fail_operation(const std::string& message) { throw Failure(message, "template_operation"); }
[[noreturn]] inline void fail_unsafe(const std::string& message) {
  throw Failure(
      message, "template_unsafe",
      "templates cannot modify values or read private names: build a new value, as in {% set l = l + [x] %}");
}
[[noreturn]] inline void fail_unsupported(const std::string& message) {
  throw Failure(message, "template_unsupported", "docs/chat-templates.md lists what templates may use");
}
[[noreturn]] inline void fail_undefined(const std::string& message) {
  throw Failure(message, "template_undefined",
                "pass it as a variable, or ask `is defined` before, or give a default: {{ x | default('') }}");
}
[[noreturn]] inline void fail_limit(const std::string& message, std::string_view hint = {}) {
  throw Failure(message, "template_limit", hint);
}

}  // namespace lathe::jinja
