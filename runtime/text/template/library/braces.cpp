#include "runtime/text/template/library/braces.h"

#include <fmt/core.h>

#include <charconv>
#include <optional>

#include "runtime/text/template/library/number_format.h"
#include "runtime/text/template/values/lookup.h"
#include "runtime/text/template/values/repr.h"

namespace lathe::jinja {

namespace {

std::optional<std::size_t> position(std::string_view text) {
  std::size_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

class Braces {
 public:
  Braces(Runtime& runtime, const Arguments& arguments) : runtime_(runtime), arguments_(arguments) {}

  /// `depth`: fields may stand in the spec of a field, but in no spec within that.
  std::string run(std::string_view format, int depth) {
    if (depth > 1) fail_operation("Max string recursion exceeded");
    std::string out;
    for (std::size_t at = 0; at < format.size(); ++at) {
      const char c = format[at];
      if (c != '{' && c != '}') {
        out += c;
      } else if (at + 1 < format.size() && format[at + 1] == c) {
        out += c;
        ++at;
      } else if (c == '}') {
        fail_operation("Single '}' encountered in format string");
      } else {
        const std::size_t end = field_end(format, at + 1);
        out += field(format.substr(at + 1, end - at - 1), depth);
        at = end;
      }
      runtime_.spend(1);
    }
    return out;
  }

 private:
  /// The } of the field that starts at `at`.
  static std::size_t field_end(std::string_view format, std::size_t at) {
    if (at == format.size()) fail_operation("Single '{' encountered in format string");
    for (int open = 1; at < format.size(); ++at) {
      open += format[at] == '{';
      open -= format[at] == '}';
      if (open == 0) return at;
    }
    fail_operation("expected '}' before end of string");
  }

  std::string field(std::string_view text, int depth) {
    std::size_t name_end = 0;
    bool in_brackets = false;
    for (; name_end < text.size(); ++name_end) {
      const char c = text[name_end];
      if (c == '[') in_brackets = true;
      if (c == ']') in_brackets = false;
      if (!in_brackets && (c == '!' || c == ':')) break;
    }
    Value value = lookup(text.substr(0, name_end));
    std::string_view rest = text.substr(name_end);
    if (rest.starts_with('!')) {
      if (rest.size() < 2) fail_operation("end of string while looking for conversion specifier");
      value = converted(rest[1], value);
      rest.remove_prefix(2);
      if (!rest.empty() && rest[0] != ':') fail_operation("expected ':' after conversion specifier");
    }
    const std::string spec = rest.empty() ? "" : run(rest.substr(1), depth + 1);
    return format_value(runtime_, value, spec);
  }

  Value converted(char conversion, const Value& value) {
    if (conversion == 's') return to_text(runtime_, value);
    if (conversion == 'r' || conversion == 'a') return repr(runtime_, value);
    fail_operation(fmt::format("Unknown conversion specifier '{}'", conversion));
  }

  Value lookup(std::string_view path) {
    const std::size_t end = std::min(path.find_first_of(".["), path.size());
    Value value = first(path.substr(0, end));
    for (std::size_t at = end; at < path.size();) {
      if (path[at] == '.') {
        const std::size_t stop = std::min(path.find_first_of(".[", at + 1), path.size());
        value = attribute_of(runtime_, value, path.substr(at + 1, stop - at - 1));
        at = stop;
      } else {
        const std::size_t stop = path.find(']', at);
        if (stop == std::string_view::npos) fail_operation("Missing ']' in format string");
        const std::string_view key = path.substr(at + 1, stop - at - 1);
        const auto index = position(key);
        value = element_of(runtime_, value, index ? Value(*index) : Value(key));
        at = stop + 1;
        if (at < path.size() && path[at] != '.' && path[at] != '[')
          fail_operation("Only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return value;
  }

  Value first(std::string_view name) {
    auto index = position(name);
    if (name.empty()) index = next_++;
    if (index) {
      if (*index < arguments_.positional.size()) return arguments_.positional[*index];
      fail_operation("tuple index out of range");
    }
    for (const auto& [key, value] : arguments_.named)
      if (key == name) return value;
    fail_operation(string_repr(name));
  }

  Runtime& runtime_;
  const Arguments& arguments_;
  std::size_t next_ = 0;
};

}  // namespace

std::string format_braces(Runtime& runtime, std::string_view format, const Arguments& arguments) {
  return Braces(runtime, arguments).run(format, 0);
}

}  // namespace lathe::jinja
