#include "models/import/pt2/sizes/size_guards.h"

#include <fmt/core.h>

#include <cctype>
#include <charconv>

namespace lathe::pt2 {

namespace {

using Relation = ir::DimCheck::Relation;

class GuardParser {
 public:
  GuardParser(std::string_view text, const InputSize& size_of) : rest_(text), size_of_(size_of) {}

  std::optional<ir::DimCheck> parse() {
    const std::optional<Dim> left = sum();
    const std::string_view relation = left ? comparison() : "";
    const std::optional<Dim> right = relation.empty() ? std::nullopt : sum();
    if (!right || !is_at_end()) return std::nullopt;
    const bool is_less = relation.starts_with('<');
    const Dim &low = is_less ? *left : *right, &high = is_less ? *right : *left;
    if (relation == "==") return check_of(*left, *right, Relation::equal);
    return check_of(relation.size() == 1 ? low + Dim(1) : low, high, Relation::at_most);
  }

 private:
  static ir::DimCheck check_of(const Dim& left, const Dim& right, Relation relation) {
    return {.left = left,
            .right = right,
            .relation = relation,
            .loc = {},
            .op = "input",
            .label = "import_range",
            .message = {}};
  }

  bool take(std::string_view text) {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  bool is_at_end() { return take("") && rest_.empty(); }

  std::string_view comparison() {
    for (const std::string_view each : {"==", "<=", ">=", "<", ">"})
      if (take(each)) return each;
    return "";
  }

  std::optional<std::int64_t> number() {
    (void)take("");
    std::int64_t value = 0;
    const auto read = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (read.ec != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(read.ptr - rest_.data()));
    return value;
  }

  std::optional<Dim> sum() {
    std::optional<Dim> total = product();
    while (total) {
      const bool adds = take("+");
      if (!adds && !take("-")) break;
      const std::optional<Dim> next = product();
      total = !next ? next : adds ? *total + *next : *total - *next;
    }
    return total;
  }
  std::optional<Dim> product() {
    std::optional<Dim> total = factor();
    while (total && !rest_.starts_with("**") && take("*")) {
      const std::optional<Dim> next = factor();
      total = next ? std::optional(*total * *next) : std::nullopt;
    }
    return total;
  }

  /// A number, or the size of an input: "L['x'].size()[0]".
  std::optional<Dim> factor() {
    if (!take("L['")) {
      const std::optional<std::int64_t> value = number();
      return value ? std::optional(Dim(*value)) : std::nullopt;
    }
    const std::size_t end = rest_.find('\'');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view input = rest_.substr(0, end);
    rest_.remove_prefix(end);
    if (!take("'].size()[")) return std::nullopt;
    const std::optional<std::int64_t> dim = number();
    if (!dim || *dim < 0 || !take("]")) return std::nullopt;
    return size_of_(input, static_cast<std::size_t>(*dim));
  }

  std::string_view rest_;
  const InputSize& size_of_;
};

}  // namespace

std::optional<ir::DimCheck> parse_guard(std::string_view guard, const InputSize& size_of) {
  std::optional<ir::DimCheck> check = GuardParser(guard, size_of).parse();
  if (!check) return std::nullopt;
  check->message = fmt::format("the model is exported for sizes with {}", guard);
  return check;
}

}  // namespace lathe::pt2
