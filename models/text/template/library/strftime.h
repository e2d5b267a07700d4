#pragma once

#include <ctime>
#include <string>
#include <string_view>

namespace lathe::jinja {

/// Returns C's strftime with English names, independent of the locale. Supports %a %A %b %B %c %d %D %e %F %H %I %j
/// %m %M %n %p %S %t %T %u %w %x %X %y %Y %% and glibc's %-d for numbers without padding. Throws Failure
/// [template_unsupported] for other letters.
std::string format_time(std::string_view format, const std::tm& time);

std::tm local_time();

}  // namespace lathe::jinja
