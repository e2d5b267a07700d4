#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"

namespace lathe::ir::ops {

namespace {

/// Splits "bik,bkj->bij" into its three roles; returns nothing if it has another form.
std::optional<ContractionRoles> parse(std::string_view spec) {
  const auto comma = spec.find(','), arrow = spec.find("->");
  if (comma == std::string_view::npos || arrow == std::string_view::npos || comma > arrow) return std::nullopt;
  ContractionRoles roles{.lhs = std::string(spec.substr(0, comma)),
                         .rhs = std::string(spec.substr(comma + 1, arrow - comma - 1)),
                         .out = std::string(spec.substr(arrow + 2))};
  for (const std::string* part : {&roles.lhs, &roles.rhs, &roles.out})
    for (const char c : *part)
      if (!std::isalpha(static_cast<unsigned char>(c))) return std::nullopt;
  return roles;
}

bool has(std::string_view labels, char c) { return labels.find(c) != std::string_view::npos; }

void require_distinct(const InferContext& ctx, std::string_view labels) {
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (has(labels.substr(i + 1), labels[i]))
      ctx.fail("contract_spec", fmt::format("the label {} occurs twice in '{}'", labels[i], labels),
               "take the diagonal first, or let einsum do it");
}

ContractionRoles require_roles(const InferContext& ctx) {
  const auto& spec = ctx.attr<std::string>("spec");
  const auto roles = parse(spec);
  if (!roles)
    ctx.fail("contract_spec", fmt::format("'{}' does not describe a product", spec),
             "write a letter for each dim, as in 'bik,bkj->bij'");
  for (const std::string* part : {&roles->lhs, &roles->rhs, &roles->out}) require_distinct(ctx, *part);
  for (const char c : roles->lhs + roles->rhs + roles->out)
    if (has(roles->lhs, c) + has(roles->rhs, c) + has(roles->out, c) < 2)
      ctx.fail("contract_spec", fmt::format("the label {} occurs only once in '{}'", c, spec),
               has(roles->out, c) ? "a label of the result comes from an operand"
                                  : "sum such a dim away first, or let einsum do it");
  return *roles;
}

TensorType contract_infer(const InferContext& ctx) {
  const DType dtype = rules::require_same_dtype(ctx);
  rules::require_kind(ctx, 0, rules::reals);
  const ContractionRoles roles = require_roles(ctx);
  for (const int i : {0, 1}) {
    const std::string& labels = i == 0 ? roles.lhs : roles.rhs;
    if (ctx.operand(i).rank() != static_cast<int>(labels.size()))
      ctx.fail("contract_rank",
               fmt::format("'{}' names {} dims, but {} has {}", labels, labels.size(), rules::describe(ctx, i),
                           ctx.operand(i).rank()),
               "write one letter for each dim");
  }
  const auto size = [&](int i, char c) {
    return ctx.operand(i).shape[static_cast<int>((i == 0 ? roles.lhs : roles.rhs).find(c))];
  };
  for (const char c : roles.lhs)
    if (has(roles.rhs, c) && size(0, c) != size(1, c))
      ctx.require_equal(size(0, c), size(1, c), "contract_size",
                        fmt::format("{} and {} differ in dim {}: {} and {}", rules::describe(ctx, 0),
                                    rules::describe(ctx, 1), c, size(0, c).to_string(), size(1, c).to_string()),
                        "a label means one size");
  Shape shape;
  for (const char c : roles.out) {
    const bool left = has(roles.lhs, c), right = has(roles.rhs, c);
    shape.push_back(left && right ? rules::one_size(size(0, c), size(1, c)) : size(left ? 0 : 1, c));
  }
  return TensorType::contiguous(dtype, shape);
}

ContractionRoles contract_roles(const Node& node) {
  const auto roles = parse(node.attrs.get<std::string>("spec"));
  LATHE_ASSERT(roles);
  return *roles;
}

/// Permutes the three roles: d lhs = grad x rhs, d rhs = grad x lhs.
void contract_gradient(const GradientContext& g) {
  const ContractionRoles r = contract_roles(g.node);
  if (g.needs(0)) g.set(0, ir::contract(g.grad, g.operand(1), fmt::format("{},{}->{}", r.out, r.rhs, r.lhs)));
  if (g.needs(1)) g.set(1, ir::contract(g.operand(0), g.grad, fmt::format("{},{}->{}", r.lhs, r.out, r.rhs)));
}

std::vector<Sample> contract_samples() {
  using Sizes = std::vector<std::int64_t>;
  const auto sample = [](Sizes a, Sizes b, std::string spec, DType dtype = f64) {
    return Sample{.operands = {{std::move(a), dtype}, {std::move(b), dtype}}, .attrs = {{"spec", std::move(spec)}}};
  };
  return {sample({2, 3}, {3, 4}, "ik,kj->ij"),
          sample({2, 3, 4}, {2, 4, 5}, "bik,bkj->bij"),
          sample({3, 2}, {4, 3}, "ki,jk->ji"),
          sample({3}, {3}, "k,k->"),
          sample({2}, {3}, "i,j->ij"),
          sample({2, 3}, {2, 3}, "bi,bi->ib"),
          sample({2, 3, 2}, {3, 2}, "ikl,kl->i"),
          sample({}, {2}, ",i->i"),
          sample({1, 1}, {1, 2}, "ik,kj->ij"),
          sample({2, 0}, {0, 3}, "ik,kj->ij"),
          sample({0, 2}, {2, 3}, "ik,kj->ij"),
          sample({2, 3}, {3, 2}, "ik,kj->ij", i64)};
}

constexpr AttrSpec contract_attrs[] = {
    {"spec", AttrKind::text, true, {}, "a letter for each dim, as in 'bik,bkj->bij'"}};
constexpr std::string_view contract_labels[] = {"dtype_match", "dtype_kind", "contract_spec", "contract_rank",
                                                "contract_size"};

}  // namespace

constinit const Op contract = {
    .name = "contract",
    .doc = "the product of two tensors, summed over the labels that both operands have and the result does not",
    .arity = Arity{2, 2},
    .attrs = contract_attrs,
    .labels = contract_labels,
    .infer = contract_infer,
    .meaning = Contraction{contract_roles},
    .precision = MixedPrecision::low_precision,
    .gradient = GradientRule(contract_gradient),
    .samples = contract_samples,
};

}  // namespace lathe::ir::ops
