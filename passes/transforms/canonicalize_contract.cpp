#include <fmt/core.h>

#include "ir/ops/functional.h"
#include "ir/ops/list.h"
#include "passes/transforms/canonicalize_rules.h"

namespace lathe::ir::canonical {

namespace {

ContractionRoles roles_of(const Node& contraction) { return contraction.op->as<Contraction>()->roles(contraction); }

Value contraction(const Value& a, const Value& b, const ContractionRoles& roles) {
  return contract(a, b, fmt::format("{},{}->{}", roles.lhs, roles.rhs, roles.out));
}

/// Takes a permutation off the operand: its labels change places instead.
bool absorb(Value& operand, std::string& labels) {
  const auto order = permutation(operand.node());
  if (!order) return false;
  std::string now(labels.size(), ' ');
  for (std::size_t i = 0; i < order->size(); ++i) now[static_cast<std::size_t>((*order)[i])] = labels[i];
  labels = now;
  operand = operand_of(operand);
  return true;
}

std::optional<Value> permuted_operands(const Context& c) {
  if (c.node.op != &ops::contract) return std::nullopt;
  ContractionRoles roles = roles_of(c.node);
  Value a = c.operand(0), b = c.operand(1);
  const bool first = absorb(a, roles.lhs), second = absorb(b, roles.rhs);
  if (!first && !second) return std::nullopt;
  return contraction(a, b, roles);
}

std::optional<Value> permuted_result(const Context& c) {
  const auto order = permutation(c.node);
  if (!order) return std::nullopt;
  const Value& product = c.operand(0);
  if (!is(product, ops::contract) || c.uses(product) != 1) return std::nullopt;
  ContractionRoles roles = roles_of(product.node());
  const std::string out = roles.out;
  for (std::size_t i = 0; i < order->size(); ++i) roles.out[i] = out[static_cast<std::size_t>((*order)[i])];
  return contraction(operand_of(product, 0), operand_of(product, 1), roles);
}

/// Letters in order of appearance, so that equal products read equally: "nqhd,nkhd->nhqk" -> "abcd,aecd->acbe".
std::optional<Value> rename_labels(const Context& c) {
  if (c.node.op != &ops::contract) return std::nullopt;
  ContractionRoles roles = roles_of(c.node);
  std::string letters;
  for (std::string* part : {&roles.lhs, &roles.rhs, &roles.out})
    for (char& label : *part) {
      auto at = letters.find(label);
      if (at == std::string::npos) {
        at = letters.size();
        letters += label;
      }
      if (at >= 52) return std::nullopt;
      label = static_cast<char>(at < 26 ? 'a' + static_cast<char>(at) : 'A' + static_cast<char>(at - 26));
    }
  return contraction(c.operand(0), c.operand(1), roles);
}

constexpr Rule all_contract_rules[] = {
    {"permuted_operands", "contract(permute(a), b) -> contract(a, b) with a's labels in a's own order",
     permuted_operands},
    {"permuted_result",
     "permute(contract(a, b)) -> contract(a, b) that writes in that order, where nothing else reads it",
     permuted_result},
    {"rename_labels", "contract's labels in order of appearance", rename_labels},
};

}  // namespace

std::span<const Rule> contract_rules() { return all_contract_rules; }

}  // namespace lathe::ir::canonical
