#include "runtime/dim_table.h"

namespace lathe {

std::size_t DimTable::add(const Dim& dim) {
  const Dim plain = dim.unnamed();
  const auto [at, is_new] = position_.try_emplace(plain.to_string(), dims_.size());
  if (is_new) dims_.push_back(plain);
  return at->second;
}

void DimTable::evaluate(const DimBindings& bindings, std::vector<std::int64_t>& values) const {
  values.resize(dims_.size());
  for (std::size_t i = 0; i < dims_.size(); ++i) values[i] = dims_[i].evaluate(bindings);
}

}  // namespace lathe
