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
#include "runtime/text/template/values/value.h"

namespace lathe::jinja {

class Failure;
struct Program;

/// An expression of a template failed. what() is "NAME:LINE: EXPRESSION: MESSAGE  [label]", with the labels of
/// values/failure.h.
class TemplateError : public UserError {
 public:
  TemplateError(const Location& at, std::string_view expression, const Failure& failure);
  /// The message alone, as Jinja or Python words it; that of raise_exception as the template gave it.
  /// Of more than 2,000 bytes the start.
  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

struct RenderLimits {
  std::uint64_t work = std::uint64_t{1} << 28;  ///< values/budget.h; a few seconds
  std::size_t output = std::size_t{1} << 26;    ///< bytes
  int depth = 1000;                             ///< of expressions, blocks, macros and iterations within each other
};

struct RenderOptions {
  std::optional<std::tm> now;    ///< what strftime_now tells; the local time where there is none
  bool assistant_spans = false;  ///< fill Rendered::assistant
  RenderLimits limits;
  std::uint64_t* work = nullptr;  ///< the work of the render is added to it, also if it fails
};

/// Bytes [begin, end) of a text.
struct TextSpan {
  std::size_t begin = 0, end = 0;
  bool operator==(const TextSpan&) const = default;
};

struct Rendered {
  std::string text;
  /// What {% generation %} blocks wrote, in order.
  std::vector<TextSpan> assistant;
};

/// A template of the language of Jinja, as far as chat templates use it (docs/chat-templates.md), with the settings
/// of transformers (Python): trim_blocks, lstrip_blocks, loop controls, a sandbox in which nothing passed in can
/// change.
class Template {
 public:
  /// `name` stands in messages. ParseError "NAME:LINE:COLUMN: .." for what is no template.
  static Template parse(std::string_view text, std::string_view name);

  /// `variables` is a dict. Throws TemplateError; UserError [template_input] for variables that are no dict, or with
  /// text that is not UTF-8. Thread-safe.
  Rendered render(const Value& variables, const RenderOptions& options = {}) const;

  const Program& program() const { return *program_; }
  /// Whether {% generation %} stands in the text.
  bool marks_generation() const;

 private:
  explicit Template(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
  std::shared_ptr<const Program> program_;
};

/// Throws UserError [template_input] for text that is not UTF-8 in a value given to a template.
void check_text(const Value& value);

}  // namespace lathe::jinja
