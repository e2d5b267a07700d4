#include "ir/support/dim.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <limits>

#include "ir/support/error.h"

namespace lathe {

namespace {

[[noreturn]] void overflow(std::string_view what) {
  throw UserError(fmt::format("the size {} does not fit 64 bits", what), "dim_overflow",
                  "use smaller dims: no buffer of this size can exist");
}

// INT64_MIN also counts as overflow, so that every coefficient can be negated and divided.
constexpr std::int64_t unusable = std::numeric_limits<std::int64_t>::min();

std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (__builtin_mul_overflow(a, b, &r) || r == unusable) overflow(fmt::format("{} * {}", a, b));
  return r;
}

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (__builtin_add_overflow(a, b, &r) || r == unusable) overflow(fmt::format("{} + {}", a, b));
  return r;
}

// Real programs stay far below these limits; without them, a few lines of text could trigger exponential work.
constexpr std::size_t max_terms = 512;
constexpr int max_degree = 64;

int degree(const Dim::Monomial& m) {
  int sum = 0;
  for (const auto& [name, power] : m) sum += power;
  return sum;
}

/// Graded lexicographic order: higher degrees first, then higher powers of earlier names: a^2, a*b, b^2, a, b, 1.
/// Multiplying both sides keeps the order, which polynomial division relies on.
bool before(const Dim::Monomial& a, const Dim::Monomial& b) {
  const int da = degree(a), db = degree(b);
  if (da != db) return da > db;
  const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (x == a.end() || y == b.end()) return false;  // equal: at the same degree, neither is a prefix of the other
  return x->first != y->first ? x->first < y->first : x->second > y->second;
}

Dim::Monomial multiply(const Dim::Monomial& a, const Dim::Monomial& b) {
  std::map<std::string, int> powers(a.begin(), a.end());
  for (const auto& [name, power] : b) powers[name] += power;
  return {powers.begin(), powers.end()};
}

std::optional<Dim::Monomial> divide(const Dim::Monomial& a, const Dim::Monomial& b) {
  std::map<std::string, int> powers(a.begin(), a.end());
  for (const auto& [name, power] : b) {
    const auto at = powers.find(name);
    if (at == powers.end() || at->second < power) return std::nullopt;
    at->second -= power;
    if (at->second == 0) powers.erase(at);
  }
  return Dim::Monomial(powers.begin(), powers.end());
}

/// Returns the unknown if the terms are a single unknown, otherwise an empty string.
std::string lone_unknown(const std::vector<Dim::Term>& terms) {
  const bool lone = terms.size() == 1 && terms[0].coefficient == 1 && degree(terms[0].monomial) == 1;
  return lone ? terms[0].monomial[0].first : std::string();
}

std::string print(const Dim::Term& term) {
  std::string text;
  if (term.coefficient != 1 || term.monomial.empty()) text = fmt::format("{}", term.coefficient);
  for (const auto& [name, power] : term.monomial)
    for (int i = 0; i < power; ++i) text += (text.empty() ? "" : "*") + name;
  return text;
}

}  // namespace

bool is_dim_name(std::string_view text) {
  if (text.empty() || (!std::isalpha(static_cast<unsigned char>(text[0])) && text[0] != '_')) return false;
  if (text.find("..") != std::string_view::npos) return false;  // a range in kernel text
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.' || c == '@'; });
}

std::int64_t Dim::checked(std::int64_t number) {
  if (number == unusable) overflow(fmt::format("{}", number));
  return number;
}

SharedBox<const Dim::Detail> Dim::make_detail(std::vector<Term> terms, std::string name) {
  return SharedBox<const Detail>::make(Detail{std::move(terms), std::move(name)});
}

Dim::Dim(std::string_view name) {
  if (!is_dim_name(name))
    throw UserError(fmt::format("'{}' cannot name a dim", name), "dim_name",
                    "a name is a letter or underscore followed by letters, digits, underscores, single dots or @");
  detail_ = make_detail({{{{std::string(name), 1}}, 1}}, std::string(name));
}

Dim::Dim(std::string_view name, std::int64_t value) : Dim(name, Dim(value)) {
  if (value < 0)
    throw UserError(fmt::format("dim {} cannot have the negative size {}", name, value), "dim_negative",
                    "give a size of zero or more");
}

Dim::Dim(std::string_view name, const Dim& size)
    : number_(size.number_),
      detail_(make_detail(size.is_number() ? std::vector<Term>() : size.detail_->terms, Dim(name).name())) {}

const std::string& Dim::name() const {
  static const std::string none;
  return detail_ ? detail_->name : none;
}

std::vector<Dim::Term> Dim::terms() const {
  if (!is_number()) return detail_->terms;
  if (number_ == 0) return {};
  return {{{}, number_}};
}

Dim Dim::from_terms(std::vector<Term> terms) {
  std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return before(a.monomial, b.monomial); });
  if (!terms.empty() && degree(terms.front().monomial) > max_degree)
    throw UserError(fmt::format("a size is a polynomial of degree above {}", max_degree), "dim_overflow",
                    "use fewer unknown dims in one product");
  std::vector<Term> kept;
  for (Term& term : terms) {
    if (!kept.empty() && kept.back().monomial == term.monomial)
      kept.back().coefficient = checked_add(kept.back().coefficient, term.coefficient);
    else
      kept.push_back(std::move(term));
    if (kept.back().coefficient == 0) kept.pop_back();
  }
  if (kept.empty()) return Dim(0);
  if (kept.size() == 1 && kept[0].monomial.empty()) return Dim(kept[0].coefficient);
  std::string name = lone_unknown(kept);
  return Dim(make_detail(std::move(kept), std::move(name)));
}

std::vector<std::string> Dim::unknowns() const {
  std::vector<std::string> names;
  if (is_number()) return names;
  for (const Term& term : detail_->terms)
    for (const auto& [name, power] : term.monomial) names.push_back(name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Dim Dim::unnamed() const {
  if (!detail_) return *this;
  if (is_number()) return Dim(number_);
  std::string own = lone_unknown(detail_->terms);
  if (own == detail_->name) return *this;
  return Dim(make_detail(detail_->terms, std::move(own)));
}

Dim operator+(const Dim& a, const Dim& b) {
  if (b.is(0)) return a;
  if (a.is(0)) return b;
  if (a.is_number() && b.is_number()) return Dim(checked_add(a.number_, b.number_));
  std::vector<Dim::Term> terms = a.terms();
  const std::vector<Dim::Term> more = b.terms();
  terms.insert(terms.end(), more.begin(), more.end());
  return Dim::from_terms(std::move(terms));
}

Dim operator-(const Dim& a, const Dim& b) { return a + b * Dim(-1); }

Dim operator*(const Dim& a, const Dim& b) {
  if (b.is(1)) return a;
  if (a.is(1)) return b;
  if (a.is_number() && b.is_number()) return Dim(checked_mul(a.number_, b.number_));
  const std::vector<Dim::Term> left = a.terms(), right = b.terms();
  if (left.size() * right.size() > max_terms)
    throw UserError(fmt::format("a size has more than {} terms", max_terms), "dim_overflow",
                    "name the unknown dims of an intermediate instead of multiplying sums");
  std::vector<Dim::Term> terms;
  for (const auto& x : left)
    for (const auto& y : right)
      terms.push_back({multiply(x.monomial, y.monomial), checked_mul(x.coefficient, y.coefficient)});
  return Dim::from_terms(std::move(terms));
}

std::int64_t Dim::number(const std::source_location& at) const {
  if (is_number()) return number_;
  throw UserError(Location(at), "number", fmt::format("{} is not a number when the graph is built", to_string()),
                  "dim_unbound", "use a dim with a known size, or compute with the dim itself");
}

Dim operator/(const Dim& a, const DimDivisor& b) {
  if (const std::optional<Dim> quotient = a.divided_by(b.dim)) return *quotient;
  throw UserError(Location(b.at), "/", fmt::format("{} does not divide {}", b.dim.to_string(), a.to_string()),
                  "dim_divide", "use sizes that divide, or divided_by(), which returns nothing if they do not");
}

std::optional<Dim> Dim::divided_by(const Dim& divisor) const {
  if (divisor.is(0)) return std::nullopt;
  if (divisor.is(1)) return *this;
  if (is_number() && divisor.is_number())
    return number_ % divisor.number_ == 0 ? std::optional(Dim(number_ / divisor.number_)) : std::nullopt;
  // Polynomial long division by the leading term; fails unless exact.
  const std::vector<Term> by = divisor.terms();
  Dim rest = unnamed(), quotient(0);
  while (!rest.is(0)) {
    const Term lead = rest.terms().front();
    auto monomial = divide(lead.monomial, by.front().monomial);
    if (!monomial || lead.coefficient % by.front().coefficient != 0) return std::nullopt;
    const Dim part = from_terms({{std::move(*monomial), lead.coefficient / by.front().coefficient}});
    quotient = quotient + part;
    rest = rest - part * divisor;
  }
  return quotient;
}

Dim::Answer Dim::equals(const Dim& other) const {
  if (*this == other) return Answer::yes;
  return (*this - other).value() ? Answer::no : Answer::unknown;
}

std::int64_t Dim::evaluate(const DimBindings& bindings) const {
  if (is_number()) return number_;
  std::int64_t sum = 0;
  for (const Term& term : detail_->terms) {
    std::int64_t product = term.coefficient;
    for (const auto& [name, power] : term.monomial) {
      const auto at = bindings.find(name);
      if (at == bindings.end())
        throw UserError(fmt::format("dim {} has no value", name), "dim_unbound",
                        "give its size, or an argument whose shape names it");
      for (int i = 0; i < power; ++i) product = checked_mul(product, at->second);
    }
    sum = checked_add(sum, product);
  }
  return sum;
}

std::string Dim::to_string() const {
  if (is_number()) return name().empty() ? fmt::format("{}", number_) : fmt::format("{}={}", name(), number_);
  std::string text;
  for (const Term& term : detail_->terms) {
    if (text.empty()) {
      text = print(term);
    } else if (term.coefficient < 0) {
      text += " - " + print({term.monomial, -term.coefficient});
    } else {
      text += " + " + print(term);
    }
  }
  const bool alias = !name().empty() && text != name();
  return alias ? fmt::format("{}={}", name(), text) : text;
}

}  // namespace lathe
