#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/error.h"
#include "models/text/template/values/value.h"

namespace lathe::jinja {

class Failure;
struct Program;

/// Evaluation of an expression failed. what() is "NAME:LINE: EXPRESSION: MESSAGE  [label]", with the labels of
/// values/object.h.
class TemplateError : public UserError {
 public:
  TemplateError(const Location& at, std::string_view expression, const Failure& failure);
  /// Returns only the message, in Jinja's or Python's words, or the text passed to raise_exception. It is truncated
  /// to 2,000 bytes.
  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

struct RenderLimits {
  std::uint64_t work = std::uint64_t{1} << 28;  ///< see Budget in values/object.h; the default takes a few seconds
  std::size_t output = std::size_t{1} << 26;    ///< bytes
  int depth = 1000;                             ///< maximum nesting of expressions, blocks, macros and iterations
};

struct RenderOptions {
  std::optional<std::tm> now;    ///< time for strftime_now; the local time by default
  bool assistant_spans = false;  ///< fill Rendered::assistant
  RenderLimits limits;
  std::uint64_t* work = nullptr;  ///< if set, increased by the work of the render, also if it fails
};

/// Bytes [begin, end) of a text.
struct TextSpan {
  std::size_t begin = 0, end = 0;
  bool operator==(const TextSpan&) const = default;
};

struct Rendered {
  std::string text;
  /// Output of {% generation %} blocks, in order.
  std::vector<TextSpan> assistant;
};

/// A template in the subset of Jinja that chat templates use (docs/chat-templates.md). The settings are those of
/// Python's transformers: trim_blocks, lstrip_blocks, loop controls, and a sandbox in which variables cannot be
/// changed.
class Template {
 public:
  /// Parses a template. `name` is its name in messages. Throws ParseError "NAME:LINE:COLUMN: ..." for a syntax error.
  static Template parse(std::string_view text, std::string_view name);

  /// Renders the template. `variables` must be a dict. Throws TemplateError, and UserError [template_input] if
  /// `variables` is not a dict or contains text that is not UTF-8. Thread-safe.
  Rendered render(const Value& variables, const RenderOptions& options = {}) const;

  const Program& program() const { return *program_; }
  /// Returns whether the template contains {% generation %}.
  bool marks_generation() const;

 private:
  explicit Template(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
  std::shared_ptr<const Program> program_;
};

/// Throws UserError [template_input] if a value contains text that is not UTF-8.
void check_text(const Value& value);

}  // namespace lathe::jinja
