#include "models/text/template/template.h"

#include <fmt/core.h>

#include "models/text/template/interpreter.h"
#include "models/text/template/syntax/parser.h"
#include "models/text/template/values/code_points.h"
#include "models/text/template/values/object.h"

namespace lathe::jinja {

// The recursion depth is bounded by Value::max_depth.
void check_text(const Value& value) {
  if (value.is_string() && find_invalid_utf8(value.string()) != std::string::npos)
    throw UserError("a text given to a template is not UTF-8", "template_input", "decode it first");
  if (value.is_sequence())
    for (const Value& item : value.items()) check_text(item);
  if (value.is(Kind::dict))
    for (const auto& [key, item] : value.dict().items()) check_text(key), check_text(item);
}

TemplateError::TemplateError(const Location& at, std::string_view expression, const Failure& failure)
    : UserError(at, expression, failure.message(), failure.label(), failure.hint()), message_(failure.message()) {}

Template Template::parse(std::string_view text, std::string_view name) { return Template(parse_program(text, name)); }

Rendered Template::render(const Value& variables, const RenderOptions& options) const {
  if (!variables.is(Kind::dict))
    throw UserError(fmt::format("the variables of a template are a dict, not {}", described(variables)),
                    "template_input");
  check_text(variables);
  Runtime runtime(options.limits.work, options.limits.depth, options.now);
  std::uint64_t unused = 0;
  const WorkMeter meter(runtime, options.work ? *options.work : unused);
  return Interpreter(*program_, variables, options, runtime).run();
}

bool Template::marks_generation() const { return program_->marks_generation; }

}  // namespace lathe::jinja
