#pragma once

#include <string>
#include <string_view>

#include "runtime/text/template/values/object.h"

/// How Python's formatting writes numbers.
namespace lathe::jinja {

/// A number without its sign, in the style of C's %e, %f, %g; in capitals for E, F, G. `value` is not negative.
std::string real_digits(double value, char type, int precision, bool alternate);
/// Base 2, 8, 10 or 16 by b, o, d, x or X, without sign and prefix.
std::string integer_digits(std::int64_t value, char type);

/// Python's format(value, spec): [[fill]align][sign][#][0][width][, or _][.precision][type]. Failure
/// [template_operation].
std::string format_value(Runtime& runtime, const Value& value, std::string_view spec);

}  // namespace lathe::jinja
