#include "frontend/train/parameter_filter.h"

#include <algorithm>
#include <utility>

namespace lathe {

ParameterFilter matrices() {
  return [](const ir::Node& parameter) { return parameter.type.rank() >= 2; };
}

ParameterFilter names_with(std::vector<std::string> parts) {
  return [parts = std::move(parts)](const ir::Node& parameter) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](const std::string& part) { return parameter.name.find(part) != std::string::npos; });
  };
}

ParameterFilter names_without(std::vector<std::string> parts) {
  return [with = names_with(std::move(parts))](const ir::Node& parameter) { return !with(parameter); };
}

}  // namespace lathe
