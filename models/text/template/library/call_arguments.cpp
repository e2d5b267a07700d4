#include "models/text/template/library/call_arguments.h"

#include <fmt/core.h>

#include <algorithm>

#include "models/text/template/values/compare_values.h"

namespace lathe::jinja {

namespace {
std::string_view plain(std::string_view parameter) {
  return parameter.ends_with('?') ? parameter.substr(0, parameter.size() - 1) : parameter;
}
}  // namespace

Bound::Bound(std::string_view function, const Arguments& given, std::initializer_list<std::string_view> parameters)
    : values_(parameters.size(), Value::missing()) {
  if (parameters.size() == 0 && !given.empty()) fail_operation(fmt::format("{} takes no arguments", function));
  if (given.positional.size() > parameters.size())
    fail_operation(fmt::format("{}() takes at most {} arguments ({} given)", function, parameters.size(),
                               given.positional.size()));
  std::copy(given.positional.begin(), given.positional.end(), values_.begin());
  for (const auto& [name, value] : given.named) {
    const auto* const at = std::find_if(parameters.begin(), parameters.end(),
                                        [&](std::string_view parameter) { return plain(parameter) == name; });
    if (at == parameters.end())
      fail_operation(fmt::format("{}() got an unexpected keyword argument '{}'", function, name));
    Value& slot = values_[static_cast<std::size_t>(at - parameters.begin())];
    if (!slot.is_missing()) fail_operation(fmt::format("{}() got multiple values for argument '{}'", function, name));
    slot = value;
  }
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const std::string_view parameter = parameters.begin()[i];
    if (values_[i].is_missing() && !parameter.ends_with('?'))
      fail_operation(fmt::format("{}() is missing its argument '{}'", function, parameter));
  }
}

std::int64_t Bound::integer(std::size_t i, std::int64_t otherwise) const {
  if (!has(i)) return otherwise;
  require_defined(values_[i]);
  if (!values_[i].is_integer())
    fail_operation(fmt::format("'{}' object cannot be interpreted as an integer", type_name(values_[i])));
  return values_[i].integer();
}

bool Bound::flag(Runtime& runtime, std::size_t i, bool otherwise) const {
  return has(i) ? truth(runtime, values_[i]) : otherwise;
}

const std::string& Bound::string(std::size_t i) const {
  if (!values_[i].is_string()) fail_operation(fmt::format("must be str, not {}", type_name(values_[i])));
  return values_[i].string();
}

}  // namespace lathe::jinja
