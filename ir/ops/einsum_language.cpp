#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "ir/ops/einsum.h"
#include "ir/ops/functional/functional.h"
#include "ir/ops/rules/operand_rules.h"

namespace lathe::ir {

namespace {

constexpr char ellipsis = 0;
constexpr int most_ellipsis_dims = 64;   // below 'A', so that they are not letters
constexpr std::size_t most_labels = 52;  // the number of letters

/// Parses an equation into labels, with one `ellipsis` character for "...".
class Reader {
 public:
  Reader(std::string_view equation, const EinsumFail& fail) : equation_(equation), fail_(fail) {}

  /// The terms before the arrow, and the one after it.
  struct Sides {
    std::vector<std::string> inputs{""};
    std::string out;
    bool explicit_out = false;
  };
  Sides read() {
    Sides sides;
    while (at_ < equation_.size()) {
      const char c = equation_[at_];
      std::string& term = sides.explicit_out ? sides.out : sides.inputs.back();
      if (c == ' ') {
        ++at_;
      } else if (c == ',' && !sides.explicit_out) {
        sides.inputs.emplace_back();
        ++at_;
      } else if (equation_.substr(at_, 2) == "->" && !sides.explicit_out) {
        sides.explicit_out = true;
        at_ += 2;
      } else if (equation_.substr(at_, 3) == "..." && term.find(ellipsis) == std::string::npos) {
        term += ellipsis;
        at_ += 3;
      } else if (std::isalpha(static_cast<unsigned char>(c))) {
        term += c;
        ++at_;
      } else {
        unexpected(c);
      }
    }
    return sides;
  }

 private:
  void unexpected(char c) const {
    fail_("einsum_syntax",
          fmt::format("the equation \"{}\" has an unexpected '{}' at position {}", equation_, c, at_),
          "write labels a-z and A-Z, \",\" between operands, \"->\" before the result, and \"...\" at most once in "
          "each");
  }

  std::string_view equation_;
  const EinsumFail& fail_;
  std::size_t at_ = 0;
};

std::string ellipsis_dims(int count) {
  std::string labels;
  for (int i = count; i > 0; --i) labels += static_cast<char>(i);
  return labels;
}

/// Returns the term with its ellipsis expanded.
std::string resolve(const std::string& term, int ellipsis_rank) {
  std::string labels;
  for (const char c : term) labels += c == ellipsis ? ellipsis_dims(ellipsis_rank) : std::string(1, c);
  return labels;
}

std::string implicit_out(const std::vector<std::string>& inputs) {
  std::map<char, int> uses;
  for (const std::string& input : inputs)
    for (const char c : input) ++uses[c];
  std::string out;
  for (const auto& [label, count] : uses)
    if (std::isalpha(static_cast<unsigned char>(label)) && count == 1) out += label;
  return out;
}

void check_out(std::string_view equation, const EinsumTerms& terms, const EinsumFail& fail) {
  for (std::size_t i = 0; i < terms.out.size(); ++i) {
    const char c = terms.out[i];
    const auto has = [&](const std::string& input) { return input.find(c) != std::string::npos; };
    if (std::none_of(terms.inputs.begin(), terms.inputs.end(), has))
      fail("einsum_label", fmt::format("the result of \"{}\" has the label {}, which no operand has", equation, c),
           "each label of the result must occur in an operand");
    if (terms.out.find(c, i + 1) != std::string::npos)
      fail("einsum_label", fmt::format("the result of \"{}\" has the label {} twice", equation, c),
           "name each label of the result once");
  }
}

}  // namespace

EinsumTerms parse_einsum(std::string_view equation, std::span<const int> ranks, const EinsumFail& fail) {
  const auto sides = Reader(equation, fail).read();
  if (sides.inputs.size() != ranks.size())
    fail("einsum_operands",
         fmt::format("the equation \"{}\" is for {} operands, not for {}", equation, sides.inputs.size(),
                     ranks.size()),
         "separate the labels of the operands by commas");
  EinsumTerms terms;
  int widest = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::string& term = sides.inputs[i];
    const bool open = term.find(ellipsis) != std::string::npos;
    const int labels = static_cast<int>(term.size()) - (open ? 1 : 0), rest = ranks[i] - labels;
    if (open ? rest < 0 || rest > most_ellipsis_dims : rest != 0)
      fail("einsum_rank",
           fmt::format("the equation \"{}\" has {} for operand {} of rank {}", equation,
                       labels == 1 ? "1 label" : fmt::format("{} labels", labels), i, ranks[i]),
           "give one label a dim, or \"...\" for the dims without a label");
    terms.inputs.push_back(resolve(term, rest));
    if (open) widest = std::max(widest, rest);
  }
  terms.out = sides.explicit_out ? resolve(sides.out, widest) : ellipsis_dims(widest) + implicit_out(terms.inputs);
  check_out(equation, terms, fail);
  std::set<char> distinct;
  for (const std::string& input : terms.inputs) distinct.insert(input.begin(), input.end());
  if (distinct.size() > most_labels)
    fail("einsum_rank", fmt::format("the equation \"{}\" runs over {} dims", equation, distinct.size()),
         "at most 52 dims can differ");
  return terms;
}

std::map<char, Dim> einsum_sizes(const EinsumTerms& terms, std::span<const Shape> shapes,
                                 const EinsumMismatch& mismatch) {
  std::map<char, Dim> sizes;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    std::map<char, Dim> own;  // a label repeated within an operand is a diagonal: 1 does not broadcast
    for (int d = 0; d < shapes[i].rank(); ++d) {
      const char label = terms.inputs[i][d];
      const Dim& size = shapes[i][d];
      const auto [at, fresh] = own.emplace(label, size);
      if (!fresh && at->second != size) mismatch(label, static_cast<int>(i), size, at->second);
      if (!fresh) at->second = rules::one_size(at->second, size);
    }
    for (const auto& [label, size] : own) {
      const auto [at, fresh] = sizes.emplace(label, size);
      Dim& before = at->second;
      if (fresh || size.is(1)) continue;
      if (before != size && !before.is(1)) mismatch(label, static_cast<int>(i), size, before);
      before = before.is(1) ? size : rules::one_size(before, size);
    }
  }
  return sizes;
}

std::string describe_label(char label) {
  if (std::isalpha(static_cast<unsigned char>(label))) return fmt::format("label {}", label);
  return fmt::format("dim -{} of the ellipsis", static_cast<int>(label));
}

namespace {

/// Permutes the dims of `a` to the order of `out`, with a dim of size 1 for each missing label.
Value align(const Value& a, std::string_view labels, std::string_view out) {
  std::vector<std::int64_t> order;
  for (const char c : out)
    if (const auto at = labels.find(c); at != std::string_view::npos) order.push_back(static_cast<std::int64_t>(at));
  Value result = std::is_sorted(order.begin(), order.end()) ? a : permute(a, order);
  for (std::size_t i = 0; i < out.size(); ++i)
    if (labels.find(out[i]) == std::string_view::npos) result = unsqueeze(result, static_cast<int>(i));
  return result;
}

/// Renames labels to the letters a, b, .., in order of first occurrence.
class Letters {
 public:
  std::string of(std::string_view labels) {
    std::string text;
    for (const char c : labels) {
      auto at = seen_.find(c);
      if (at == std::string::npos) {
        at = seen_.size();
        seen_ += c;
      }
      LATHE_ASSERT(at < alphabet.size());
      text += alphabet[at];
    }
    return text;
  }

 private:
  static constexpr std::string_view alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string seen_;
};

}  // namespace

Value multiply_labelled(const Value& a, std::string_view a_labels, const Value& b, std::string_view b_labels,
                        std::string_view out) {
  const auto summed = [&](char c) { return out.find(c) == std::string_view::npos; };
  if (std::none_of(a_labels.begin(), a_labels.end(), summed))
    return mul(align(a, a_labels, out), align(b, b_labels, out));
  Letters letters;
  const std::string lhs = letters.of(a_labels), rhs = letters.of(b_labels);
  return contract(a, b, fmt::format("{},{}->{}", lhs, rhs, letters.of(out)));
}

}  // namespace lathe::ir
