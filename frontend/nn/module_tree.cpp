#include <fmt/core.h>

#include <optional>
#include <string>

#include "frontend/nn/module.h"

namespace lathe::nn {

namespace {

/// Formats 124439808 as "124,439,808".
std::string with_commas(std::int64_t number) {
  std::string digits = fmt::format("{}", number);
  for (auto at = static_cast<std::int64_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string type_of(const Parameter& parameter) {
  return fmt::format("{}{}{}", name(parameter.dtype()), parameter.shape().to_string(),
                     parameter.is_frozen() ? "  frozen" : "");
}

/// A printed module without its name: the rest of its line, and the lines below.
struct Printed {
  std::string head;
  std::vector<std::string> lines;
  bool operator==(const Printed&) const = default;
};

/// Splits "h.11" into "h." and 11.
struct Numbered {
  std::string_view front;
  std::int64_t number;
};
std::optional<Numbered> numbered(std::string_view name) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  if (digits == name.size() || name.size() - digits > 9) return std::nullopt;
  return Numbered{name.substr(0, digits), std::stoll(std::string(name.substr(digits)))};
}

/// Number of children from `first` on that have consecutive numbers and print alike.
std::size_t alike(const std::vector<Module>& children, const std::vector<Printed>& printed, std::size_t first) {
  const auto start = numbered(children[first].name());
  std::size_t count = 1;
  for (; start && first + count < children.size(); ++count) {
    const auto next = numbered(children[first + count].name());
    if (!next || next->front != start->front || next->number != start->number + static_cast<std::int64_t>(count) ||
        printed[first + count] != printed[first])
      break;
  }
  return count;
}

/// Whether a module consists of one parameter that has its name.
bool is_parameter(const Module& module) {
  const auto& own = module.own_parameters();
  return module.children().empty() && own.size() == 1 && own[0].name() == module.path();
}

Printed print(const Module& module);

void add_children(const Module& module, Printed& to) {
  const std::vector<Module>& children = module.children();
  std::vector<Printed> printed;
  for (const Module& child : children) printed.push_back(print(child));
  for (std::size_t i = 0; i < children.size();) {
    const std::size_t count = alike(children, printed, i);
    std::string title = children[i].name();
    if (count > 1) title += fmt::format(" .. {}", numbered(children[i + count - 1].name())->number);
    if (!title.empty()) title += ": ";
    to.lines.push_back(title + printed[i].head + (count > 1 ? " each" : ""));
    for (const std::string& line : printed[i].lines) to.lines.push_back("  " + line);
    i += count;
  }
}

Printed print(const Module& module) {
  if (is_parameter(module)) return {module.kind() + "  " + type_of(module.own_parameters()[0]), {}};
  Printed printed{module.kind(), {}};
  if (!module.parameters().empty()) printed.head += "  " + with_commas(module.count());
  const std::size_t prefix = module.path().empty() ? 0 : module.path().size() + 1;
  for (const Parameter& parameter : module.own_parameters())
    printed.lines.push_back(parameter.name().substr(prefix) + "  " + type_of(parameter));
  add_children(module, printed);
  return printed;
}

}  // namespace

std::string Module::print_tree() const {
  const Printed printed = print(*this);
  std::string text = printed.head + "\n";
  for (const std::string& line : printed.lines) text += "  " + line + "\n";
  return text;
}

}  // namespace lathe::nn
