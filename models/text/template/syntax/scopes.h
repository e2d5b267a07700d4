#pragma once

#include "models/text/template/syntax/ast.h"

namespace lathe::jinja {

/// Assigns a slot to every variable, by Jinja's rules:
///   - The template, loops, macros, {% set %}, {% filter %}, {% with %} and call blocks are scopes; {% if %} is not.
///   - A variable that a scope assigns is local in the whole scope. Before the assignment it has the value of the
///     variable of that name in the next outer scope.
///   - The template's own variables read the inputs before they are assigned only where a scope reads them first.
/// Also checks that filters and tests exist, except inside {% if %}, which may test for their existence. Throws
/// ParseError.
void bind_variables(Program& program);

}  // namespace lathe::jinja
