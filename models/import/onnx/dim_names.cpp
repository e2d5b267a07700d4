#include "models/import/onnx/dim_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "ir/support/error.h"

namespace lathe::onnx {

namespace {

using Names = std::set<std::string, std::less<>>;

/// Parses sums and products of names and numbers: "past + sequence", "2*n". Nothing for other texts.
class DimExpression {
 public:
  explicit DimExpression(Text text) : rest_(text) {}

  std::optional<Dim> parse() {
    const std::optional<Dim> result = sum();
    return peek() == '\0' && rest_.empty() ? result : std::nullopt;
  }

 private:
  char peek() {
    while (!rest_.empty() && rest_[0] == ' ') rest_.remove_prefix(1);
    return rest_.empty() ? '\0' : rest_[0];
  }
  std::optional<Dim> sum() {
    std::optional<Dim> left = product();
    while (left && (peek() == '+' || peek() == '-')) {
      const bool adds = rest_[0] == '+';
      rest_.remove_prefix(1);
      const std::optional<Dim> right = product();
      if (!right) return std::nullopt;
      left = adds ? *left + *right : *left - *right;
    }
    return left;
  }
  std::optional<Dim> product() {
    std::optional<Dim> left = factor();
    while (left && peek() == '*') {
      rest_.remove_prefix(1);
      const std::optional<Dim> right = factor();
      if (!right) return std::nullopt;
      left = *left * *right;
    }
    return left;
  }
  std::optional<Dim> factor() {
    (void)peek();
    std::size_t size = 0;
    const auto is_part = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
    };
    while (size < rest_.size() && is_part(rest_[size])) ++size;
    const Text word = rest_.substr(0, size);
    rest_.remove_prefix(size);
    std::int64_t number = 0;
    const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
    if (!word.empty() && read.ec == std::errc() && read.ptr == word.data() + word.size()) return Dim(number);
    return is_dim_name(word) ? std::optional(Dim(word)) : std::nullopt;
  }

  Text rest_;
};

/// Returns the name that an expression determines: the only one that is not known, if the expression is linear in it.
std::optional<std::string> determined_name(const Dim& expression, const Names& known) {
  std::optional<std::string> found;
  for (const std::string& name : expression.unknowns()) {
    if (known.contains(name)) continue;
    if (found) return std::nullopt;
    found = name;
  }
  if (!found) return std::nullopt;
  for (const Dim::Term& term : expression.terms()) {
    const bool has_name =
        std::ranges::any_of(term.monomial, [&](const auto& power) { return power.first == *found; });
    if (has_name && term.monomial != Dim::Monomial{{*found, 1}}) return std::nullopt;
  }
  return found;
}

}  // namespace

DimNames::DimNames(const GraphProto& graph) {
  for (const ValueProto& input : graph.inputs)
    if (input.shape)
      for (const DimProto& dim : *input.shape)
        if (!dim.value && is_dim_name(dim.name)) plain_.emplace(dim.name);
  for (std::size_t before = plain_.size() + 1; before != plain_.size();) {
    before = plain_.size();
    for (const ValueProto& input : graph.inputs)
      if (input.shape)
        for (const DimProto& dim : *input.shape)
          if (const auto expression = DimExpression(dim.name).parse())
            if (const auto name = determined_name(*expression, plain_)) plain_.insert(*name);
  }
  taken_ = plain_;
}

std::string DimNames::free_name(std::string_view text) {
  if (const auto known = renamed_.find(text); known != renamed_.end()) return known->second;
  std::string name;
  for (const char c : text)
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 && static_cast<unsigned char>(c) < 0x80 ? c : '_';
  if (!is_dim_name(name)) name = "dim_" + name;
  const std::string base = name;
  for (int i = 2; taken_.contains(name); ++i) name = fmt::format("{}_{}", base, i);
  taken_.insert(name);
  return renamed_[std::string(text)] = name;
}

Dim DimNames::dim(const ValueProto& input, std::size_t i) {
  const DimProto& dim = (*input.shape)[i];
  if (dim.value) {
    if (*dim.value < 0)
      throw UserError(fmt::format("input {} has the size {} in dim {}", input.name, *dim.value, i), "import_file");
    return *dim.value;
  }
  if (dim.name.empty()) return Dim(free_name(fmt::format("{}_{}", input.name, i)));
  if (plain_.contains(dim.name)) return Dim(dim.name);
  if (const auto expression = DimExpression(dim.name).parse())
    if (std::ranges::all_of(expression->unknowns(), [&](const std::string& name) { return plain_.contains(name); }))
      return *expression;
  return Dim(free_name(dim.name));
}

}  // namespace lathe::onnx
