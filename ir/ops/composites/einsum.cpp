#include "ir/ops/einsum.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/ops/composites/composite.h"

namespace lathe::ir {

namespace {

constexpr AttrSpec einsum_attrs[] = {
    {"equation", AttrKind::text, true, {}, "the labels of each operand's dims and of the result: \"bij,bjk->bik\""}};
constexpr std::string_view einsum_labels[] = {"dtype_kind",  "dtype_match",  "einsum_syntax", "einsum_operands",
                                              "einsum_rank", "einsum_label", "einsum_size"};

TensorType infer_einsum(const InferContext& ctx) {
  const DType dtype = rules::require_same_dtype(ctx);
  std::vector<int> ranks;
  std::vector<Shape> shapes;
  for (int i = 0; i < ctx.arity(); ++i) {
    rules::require_kind(ctx, i, rules::reals);
    ranks.push_back(ctx.operand(i).rank());
    shapes.push_back(ctx.operand(i).shape);
  }
  const auto& equation = ctx.attr<std::string>("equation");
  const auto fail = [&](std::string_view label, const std::string& message, std::string_view hint) {
    ctx.fail(label, message, hint);
  };
  const EinsumTerms terms = parse_einsum(equation, ranks, fail);
  const auto mismatch = [&](char label, int operand, const Dim& size, const Dim& before) {
    ctx.require_equal(size, before, "einsum_size",
                      fmt::format("{} of \"{}\" has size {} in {}, but {} before it", describe_label(label), equation,
                                  size.to_string(), rules::describe(ctx, operand), before.to_string()),
                      "a label has one size, or 1 in some operands");
  };
  const auto sizes = einsum_sizes(terms, shapes, mismatch);
  Shape shape;
  for (const char c : terms.out) shape.push_back(sizes.at(c));
  return TensorType::contiguous(dtype, std::move(shape));
}

bool has_letter(std::string_view labels, char c) { return labels.find(c) != std::string_view::npos; }

/// An intermediate operand, with one label per dim.
struct Labelled {
  Value value;
  std::string labels;
};

/// Replaces repeated labels by the diagonal: "iji" -> "ji".
Labelled take_diagonals(Labelled term) {
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    const auto again = term.labels.find(term.labels[i], i + 1);
    if (again == std::string::npos) continue;
    const char label = term.labels[i];
    term.value = diagonal(term.value, static_cast<int>(i), static_cast<int>(again));
    term.labels.erase(again, 1);
    term.labels.erase(i, 1);
    term.labels += label;
    i = static_cast<std::size_t>(-1);  // positions have changed: restart
  }
  return term;
}

/// Squeezes dims of size 1 whose label has another size elsewhere, because they only broadcast.
Labelled drop_broadcast(Labelled term, const std::map<char, Dim>& sizes) {
  for (std::size_t i = term.labels.size(); i-- > 0;)
    if (term.value.shape()[static_cast<int>(i)].is(1) && !sizes.at(term.labels[i]).is(1)) {
      term.value = squeeze(term.value, static_cast<int>(i));
      term.labels.erase(i, 1);
    }
  return term;
}

/// Sums over the labels that nothing else uses.
Labelled sum_private(Labelled term, std::string_view needed) {
  std::vector<int> axes;
  std::string kept;
  for (std::size_t i = 0; i < term.labels.size(); ++i) {
    if (has_letter(needed, term.labels[i]))
      kept += term.labels[i];
    else
      axes.push_back(static_cast<int>(i));
  }
  return {sum_over(term.value, axes, false), kept};
}

/// Returns the labels of the result and of all terms except i and j.
std::string labels_outside(const std::vector<Labelled>& terms, std::string_view out, std::size_t i, std::size_t j) {
  std::string labels(out);
  for (std::size_t k = 0; k < terms.size(); ++k)
    if (k != i && k != j) labels += terms[k].labels;
  return labels;
}

/// Returns the first later term that shares a label with the first one, otherwise the second term. This delays outer
/// products.
std::size_t partner(const std::vector<Labelled>& terms) {
  for (std::size_t k = 1; k < terms.size(); ++k)
    for (const char c : terms[0].labels)
      if (has_letter(terms[k].labels, c)) return k;
  return 1;
}

/// Replaces the first term by its product with its partner.
void multiply_two(std::vector<Labelled>& terms, std::string_view out) {
  const std::size_t k = partner(terms);
  const std::string needed = labels_outside(terms, out, 0, k);
  std::string kept;
  if (terms.size() == 2) {
    kept = out;
  } else {
    for (const char c : terms[0].labels + terms[k].labels)
      if (has_letter(needed, c) && !has_letter(kept, c)) kept += c;
  }
  const Value product = multiply_labelled(terms[0].value, terms[0].labels, terms[k].value, terms[k].labels, kept);
  terms[0] = {product, kept};
  terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(k));
}

/// Handles a single operand: permutes its dims to the order of the result, and sums the others.
Value rearrange(const Labelled& term, std::string_view out) {
  std::vector<std::int64_t> order;
  for (const char c : out) order.push_back(static_cast<std::int64_t>(term.labels.find(c)));
  std::vector<int> summed;
  for (std::size_t i = 0; i < term.labels.size(); ++i)
    if (!has_letter(out, term.labels[i])) {
      summed.push_back(static_cast<int>(order.size()));
      order.push_back(static_cast<std::int64_t>(i));
    }
  const Value sorted = std::is_sorted(order.begin(), order.end()) ? term.value : permute(term.value, order);
  return summed.empty() ? contiguous(sorted) : sum_over(sorted, summed, false);
}

Value expand_einsum(GraphBuilder&, const Node& node, std::span<const Value> operands) {
  std::vector<int> ranks;
  std::vector<Shape> shapes;
  for (const Value& operand : operands) {
    ranks.push_back(operand.rank());
    shapes.push_back(operand.shape());
  }
  const EinsumTerms parsed = parse_einsum(node.attrs.get<std::string>("equation"), ranks,
                                          [](std::string_view, const std::string& message, std::string_view) {
                                            throw InternalError("einsum: " + message);
                                          });
  const auto sizes = einsum_sizes(parsed, shapes, [](char, int, const Dim&, const Dim&) {});
  std::vector<Labelled> terms;
  for (std::size_t i = 0; i < operands.size(); ++i)
    terms.push_back(drop_broadcast(take_diagonals({operands[i], parsed.inputs[i]}), sizes));
  if (terms.size() == 1) return rearrange(terms[0], parsed.out);
  for (std::size_t i = 0; i < terms.size(); ++i)
    terms[i] = sum_private(terms[i], labels_outside(terms, parsed.out, i, i));
  while (terms.size() > 1) multiply_two(terms, parsed.out);
  return terms[0].value;
}

std::vector<Sample> einsum_samples() {
  using Sizes = std::vector<std::int64_t>;
  std::vector<Sample> samples;
  const auto sample = [&](std::string equation, const std::vector<Sizes>& operands, DType dtype = f64) {
    Sample made{.operands = {}, .attrs = {{"equation", std::move(equation)}}};
    for (const Sizes& sizes : operands) made.operands.push_back({sizes, dtype, -2, 2});
    samples.push_back(made);
  };
  sample("ij,jk->ik", {{2, 3}, {3, 4}});
  sample("ij,jk", {{2, 3}, {3, 4}}, i64);
  sample("ij,kj->ikj", {{2, 3}, {4, 3}});
  sample("ij,kl->ijkl", {{2, 3}, {4, 2}}, i32);
  sample("...ij,...jk->...ik", {{2, 1, 2, 3}, {2, 3, 2}});
  sample("ii->", {{3, 3}});
  sample("ii->i", {{3, 3}});
  sample("iji->j", {{3, 2, 3}});
  sample("ij->ji", {{2, 3}});
  sample("bij->j", {{2, 3, 4}});
  sample("ji", {{2, 3}});
  sample("bij,bjk,ii->ki", {{3, 4, 4}, {3, 4, 2}, {4, 4}});
  sample(" b i j , b j k -> k b i", {{2, 3, 2}, {2, 2, 4}});
  sample("ij,kl,jk->il", {{2, 3}, {4, 2}, {3, 4}});
  sample("i...,i...->...", {{2, 3}, {2, 1}});
  sample(",ij->ij", {{}, {2, 3}});
  sample("ij,jk->", {{2, 3}, {1, 4}});
  sample("i,i->i", {{3}, {3}});
  sample("ij,jk->ik", {{2, 0}, {0, 3}});
  sample("ij,j->i", {{0, 3}, {3}});
  return samples;
}

}  // namespace

namespace ops {

constinit const Op einsum =
    composite("einsum", "the sum of products given by an equation of labels, as in torch.einsum", {1, -1},
              MixedPrecision::low_precision, einsum_attrs, einsum_labels, infer_einsum, expand_einsum,
              FromExpansion{}, einsum_samples);

}  // namespace ops

}  // namespace lathe::ir
