#pragma once

#include <ctime>
#include <string>
#include <string_view>

namespace lathe::jinja {

/// C's strftime with English names, whatever the process's locale is: %a %A %b %B %c %d %D %e %F %H %I %j %m %M %n %p
/// %S %t %T %u %w %x %X %y %Y %% and, as everywhere in glibc, %-d without padding. Failure [template_unsupported] for
/// other letters.
std::string format_time(std::string_view format, const std::tm& time);

std::tm local_time();

}  // namespace lathe::jinja
