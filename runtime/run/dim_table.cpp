#include "runtime/run/dim_table.h"

#include <algorithm>

namespace lathe {

std::size_t DimTable::add(const Dim& dim) {
  const Dim plain = dim.unnamed();
  const auto [at, is_new] = position_.try_emplace(plain.to_string(), dims_.size());
  if (!is_new) return at->second;
  dims_.push_back(plain);
  std::vector<Term>& terms = terms_.emplace_back();
  for (const Dim::Term& term : plain.terms()) {
    Term& own = terms.emplace_back(Term{term.coefficient, {}});
    for (const auto& [name, power] : term.monomial) {
      const auto known = std::find(unknowns_.begin(), unknowns_.end(), name);
      own.unknowns.insert(own.unknowns.end(), static_cast<std::size_t>(power),
                          static_cast<std::size_t>(known - unknowns_.begin()));
      if (known == unknowns_.end()) unknowns_.push_back(name);
    }
  }
  return at->second;
}

void DimTable::evaluate(const DimBindings& bindings, std::vector<std::int64_t>& values) {
  bool all_known = true;
  bound_.resize(unknowns_.size());
  for (std::size_t i = 0; i < unknowns_.size(); ++i) {
    const auto found = bindings.find(unknowns_[i]);
    all_known = all_known && found != bindings.end();
    bound_[i] = all_known ? found->second : 0;
  }
  values.resize(dims_.size());
  for (std::size_t i = 0; i < dims_.size(); ++i) {
    std::int64_t sum = 0;
    bool fits = all_known;
    for (const Term& term : terms_[i]) {
      std::int64_t product = term.coefficient;
      for (const std::size_t unknown : term.unknowns)
        fits = !__builtin_mul_overflow(product, bound_[unknown], &product) && fits;
      fits = !__builtin_add_overflow(sum, product, &sum) && fits;
    }
    values[i] = fits ? sum : dims_[i].evaluate(bindings);  // evaluate() throws the error on overflow
  }
}

}  // namespace lathe
