#include "models/import/pt2/sizes/size_expression.h"

#include <cctype>
#include <charconv>
#include <vector>

#include "models/import/ops/sizes/dim_functions.h"

namespace lathe::pt2 {

namespace {

class Parser {
 public:
  Parser(std::string_view text, const SymbolDim& dim_of) : rest_(text), dim_of_(dim_of) {}

  std::optional<Dim> parse() {
    const std::optional<Dim> result = expression(0);
    skip_spaces();
    return rest_.empty() ? result : std::nullopt;
  }

  /// Reads "Symbol('s77', ..)".
  std::optional<std::string> symbol() {
    if (word() != "Symbol" || !take('(') || !take('\'')) return std::nullopt;
    const std::size_t end = rest_.find('\'');
    if (end == std::string_view::npos) return std::nullopt;
    std::string name(rest_.substr(0, end));
    // Assumptions, such as positive=True, are known to sympy only.
    const std::size_t close = rest_.find(')', end);
    if (close == std::string_view::npos) return std::nullopt;
    rest_.remove_prefix(close + 1);
    return name;
  }

  bool is_at_end() {
    skip_spaces();
    return rest_.empty();
  }

 private:
  using Operands = std::vector<Dim>;

  void skip_spaces() {
    while (!rest_.empty() && rest_[0] == ' ') rest_.remove_prefix(1);
  }
  bool take(char c) {
    skip_spaces();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string_view word() {
    skip_spaces();
    std::size_t size = 0;
    while (size < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[size])) != 0 || rest_[size] == '_' ||
                                   rest_[size] == '.' || rest_[size] == '-'))
      ++size;
    const std::string_view found = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return found;
  }
  std::optional<std::int64_t> number() {
    const std::string_view text = word();
    std::int64_t value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
    return value;
  }

  std::optional<Dim> expression(int depth) {
    constexpr int max_depth = 64;
    if (depth > max_depth) return std::nullopt;
    const std::string_view before = rest_;
    const std::string_view name = word();
    if (name == "Symbol") {
      rest_ = before;
      const std::optional<std::string> found = symbol();
      return found ? dim_of_(*found) : std::nullopt;
    }
    if (!take('(')) return std::nullopt;
    if (name == "Integer") {
      const std::optional<std::int64_t> value = number();
      return value && take(')') ? std::optional(Dim(*value)) : std::nullopt;
    }
    Operands operands;
    do {
      const std::optional<Dim> operand = expression(depth + 1);
      if (!operand) return std::nullopt;
      operands.push_back(*operand);
    } while (take(','));
    return take(')') ? combined(name, operands) : std::nullopt;
  }

  static std::optional<Dim> combined(std::string_view name, const Operands& operands) {
    const std::string_view function = name.substr(name.rfind('.') + 1);
    if (function == "FloorDiv" && operands.size() == 2) return importing::quotient(operands[0], operands[1], true);
    if (function == "Pow" && operands.size() == 2) return power(operands[0], operands[1]);
    if (function != "Add" && function != "Mul") return std::nullopt;
    Dim result = operands[0];
    for (std::size_t i = 1; i < operands.size(); ++i)
      result = function == "Add" ? result + operands[i] : result * operands[i];
    return result;
  }
  static std::optional<Dim> power(const Dim& base, const Dim& exponent) {
    constexpr std::int64_t most = 8;
    if (!exponent.value() || *exponent.value() < 0 || *exponent.value() > most) return std::nullopt;
    Dim result = 1;
    for (std::int64_t i = 0; i < *exponent.value(); ++i) result = result * base;
    return result;
  }

  std::string_view rest_;
  const SymbolDim& dim_of_;
};

}  // namespace

std::optional<Dim> parse_size(std::string_view text, const SymbolDim& dim_of) { return Parser(text, dim_of).parse(); }

std::optional<std::string> symbol_of(std::string_view text) {
  const SymbolDim none = [](std::string_view) { return std::nullopt; };
  Parser parser(text, none);
  std::optional<std::string> found = parser.symbol();
  return parser.is_at_end() ? found : std::nullopt;
}

}  // namespace lathe::pt2
