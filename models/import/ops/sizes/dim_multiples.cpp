#include "models/import/ops/sizes/dim_multiples.h"

#include <fmt/core.h>

namespace lathe::importing {

bool DimMultiples::add(const SizeMultiple& needed) {
  constexpr std::int64_t most = 1 << 20;
  const auto known = names_.find(needed.dim());
  const std::string name = known == names_.end() ? needed.dim() : known->second;
  if (!sizes_.contains(name)) return false;
  std::int64_t& factor = factors_.try_emplace(name, 1).first->second;
  if (needed.factor() < 2 || factor > most / needed.factor()) return false;
  factor *= needed.factor();
  return !sizes_.contains(fmt::format("{}_div_{}", name, factor));
}

Dim DimMultiples::apply(const Dim& size) {
  Dim result = 0;
  for (const Dim::Term& term : size.terms()) {
    Dim product = term.coefficient;
    for (const auto& [name, power] : term.monomial) {
      sizes_.insert(name);
      Dim dim(name);
      if (const auto found = factors_.find(name); found != factors_.end()) {
        const std::string part = fmt::format("{}_div_{}", name, found->second);
        names_[part] = name;
        dim = Dim(part) * Dim(found->second);
      }
      for (int i = 0; i < power; ++i) product = product * dim;
    }
    result = result + product;
  }
  return result;
}

}  // namespace lathe::importing
