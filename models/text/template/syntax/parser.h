#pragma once

#include <memory>
#include <string_view>

#include "models/text/template/syntax/ast.h"

namespace lathe::jinja {

/// Parses a template and binds its variables (scopes.h). Throws ParseError "NAME:LINE:COLUMN: ...".
std::shared_ptr<const Program> parse_program(std::string_view text, std::string_view name);

}  // namespace lathe::jinja
