#include "tools/options/number_option.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "ir/support/visible.h"

namespace lathe::tools {

namespace {

CLI::Option* checked(CLI::Option* option, std::string range, std::function<bool(const std::string&)> fits) {
  CLI::Validator validator(
      [option, range, fits = std::move(fits)](std::string& text) -> std::string {
        // Not CLI11's ValidationError type, because CLI11 adds a prefix to its message.
        if (!fits(text))
          throw CLI::ParseError(fmt::format("{} is {}; it must be {}", option->get_name(),
                                            text.empty() ? "empty" : visible(text), range),
                                CLI::ExitCodes::ValidationError);
        return {};
      },
      range);
  return option->check(std::move(validator));
}

/// Parses the whole text as a number, like CLI11 does after this check, including hexadecimal. `read` is strtoll or
/// similar.
template <class Number, class... Base>
std::optional<Number> number(const std::string& text, Number (*read)(const char*, char**, Base...), Base... base) {
  char* end = nullptr;
  errno = 0;
  const Number value = read(text.c_str(), &end, base...);
  if (text.empty() || end != text.c_str() + text.size()) return std::nullopt;
  if (std::is_integral_v<Number> && errno == ERANGE) return std::nullopt;
  return value;
}

CLI::Option* checked_whole(CLI::Option* option, const std::string& range, std::int64_t least, std::int64_t most) {
  return checked(option, "a whole number " + range, [least, most](const std::string& text) {
    const auto value = number<long long>(text, std::strtoll, 0);
    return value && *value >= least && *value <= most;
  });
}

CLI::Option* checked_real(CLI::Option* option, const std::string& range, std::function<bool(double)> fits) {
  return checked(option, "a number " + range, [fits = std::move(fits)](const std::string& text) {
    const auto value = number<double>(text, std::strtod);
    return value && std::isfinite(*value) && fits(*value);
  });
}

}  // namespace

CLI::Option* at_least(CLI::Option* option, std::int64_t least) {
  return checked_whole(option, fmt::format("of at least {}", least), least, std::numeric_limits<std::int64_t>::max());
}

CLI::Option* between(CLI::Option* option, std::int64_t least, std::int64_t most) {
  return checked_whole(option, fmt::format("from {} to {}", least, most), least, most);
}

CLI::Option* seed(CLI::Option* option) {
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  return checked(option, fmt::format("a whole number from 0 to {}", most), [](const std::string& text) {
    return text.find('-') == text.npos && number<unsigned long long>(text, std::strtoull, 0);
  });
}

CLI::Option* positive(CLI::Option* option, double most) {
  const bool bounded = most < std::numeric_limits<double>::max();
  return checked_real(option, bounded ? fmt::format("above 0, at most {}", most) : "above 0",
                      [most](double value) { return value > 0 && value <= most; });
}

CLI::Option* not_negative(CLI::Option* option) {
  return checked_real(option, "of at least 0", [](double value) { return value >= 0; });
}

CLI::Option* real_between(CLI::Option* option, double least, double most) {
  return checked_real(option, fmt::format("from {} to {}", least, most),
                      [least, most](double value) { return value >= least && value <= most; });
}

}  // namespace lathe::tools
