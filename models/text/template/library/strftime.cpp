#include "models/text/template/library/strftime.h"

#include <fmt/core.h>

#include <array>

#include "models/text/template/values/failure.h"

namespace lathe::jinja {

namespace {

constexpr std::array days{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
constexpr std::array months{"January", "February", "March",     "April",   "May",      "June",
                            "July",    "August",   "September", "October", "November", "December"};

template <std::size_t size>
std::string name_of(const std::array<const char*, size>& names, int index) {
  return index >= 0 && static_cast<std::size_t>(index) < size ? names[static_cast<std::size_t>(index)] : "?";
}

std::string padded(int number, int width, bool plain, char fill = '0') {
  if (plain) return fmt::format("{}", number);
  return fill == '0' ? fmt::format("{:0{}}", number, width) : fmt::format("{:{}}", number, width);
}

std::string field(char letter, bool plain, const std::tm& time) {
  const int hour12 = time.tm_hour % 12 == 0 ? 12 : time.tm_hour % 12;
  switch (letter) {
    case 'a': return name_of(days, time.tm_wday).substr(0, 3);
    case 'A': return name_of(days, time.tm_wday);
    case 'b':
    case 'h': return name_of(months, time.tm_mon).substr(0, 3);
    case 'B': return name_of(months, time.tm_mon);
    case 'c': return format_time("%a %b %e %H:%M:%S %Y", time);
    case 'd': return padded(time.tm_mday, 2, plain);
    case 'D':
    case 'x': return format_time("%m/%d/%y", time);
    case 'e': return padded(time.tm_mday, 2, plain, ' ');
    case 'F': return format_time("%Y-%m-%d", time);
    case 'H': return padded(time.tm_hour, 2, plain);
    case 'I': return padded(hour12, 2, plain);
    case 'j': return padded(time.tm_yday + 1, 3, plain);
    case 'm': return padded(time.tm_mon + 1, 2, plain);
    case 'M': return padded(time.tm_min, 2, plain);
    case 'n': return "\n";
    case 'p': return time.tm_hour < 12 ? "AM" : "PM";
    case 'S': return padded(time.tm_sec, 2, plain);
    case 't': return "\t";
    case 'T':
    case 'X': return format_time("%H:%M:%S", time);
    case 'u': return padded(time.tm_wday == 0 ? 7 : time.tm_wday, 1, plain);
    case 'w': return padded(time.tm_wday, 1, plain);
    case 'y': return padded((time.tm_year + 1900) % 100, 2, plain);
    case 'Y': return padded(time.tm_year + 1900, 4, plain);
    case '%': return "%";
    default: fail_unsupported(fmt::format("the date format %{} is not supported", letter));
  }
}

}  // namespace

std::string format_time(std::string_view format, const std::tm& time) {
  std::string text;
  for (std::size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%') {
      text += format[at];
      continue;
    }
    const bool plain = at + 1 < format.size() && format[at + 1] == '-';
    at += plain ? 2 : 1;
    if (at >= format.size()) fail_unsupported("a date format ends in %");
    text += field(format[at], plain, time);
  }
  return text;
}

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm time{};
  localtime_r(&now, &time);
  return time;
}

}  // namespace lathe::jinja
