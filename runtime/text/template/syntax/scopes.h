#pragma once

#include "runtime/text/template/syntax/ast.h"

namespace lathe::jinja {

/// Gives every variable its slot, by the rules of Jinja:
///   - the template, loops, macros, {% set %}, {% filter %}, {% with %} and call blocks are scopes; {% if %} is none;
///   - what a scope assigns is its own from its start to its end, whatever runs first; before it is assigned it is
///     what the next scope further out has under that name;
///   - the template's own variables, before they are assigned, are the inputs only where a scope reads them first.
/// Also checks that filters and tests exist, but those within {% if %}, which may ask whether they do. ParseError.
void bind_variables(Program& program);

}  // namespace lathe::jinja
