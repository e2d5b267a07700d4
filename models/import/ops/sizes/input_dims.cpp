#include "models/import/ops/sizes/input_dims.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

namespace lathe::importing {

bool InputDims::add(const NeededMultiple& needed) {
  constexpr std::int64_t most = 1 << 20;
  const auto known = names_.find(needed.dim);
  const std::string name = known == names_.end() ? needed.dim : known->second;
  if (!sizes_.contains(name)) return false;
  std::int64_t& factor = factors_.try_emplace(name, 1).first->second;
  if (needed.factor < 2 || factor > most / needed.factor) return false;
  factor *= needed.factor;
  return !sizes_.contains(fmt::format("{}_div_{}", name, factor));
}

Dim InputDims::apply(const Dim& size) {
  if (const auto names = size.unknowns(); names.size() == 1 && size == Dim(names[0]) && fixed_.contains(names[0])) {
    sizes_.insert(names[0]);
    return {names[0], fixed_.at(names[0])};  // a number that keeps its name
  }
  Dim result = 0;
  for (const Dim::Term& term : size.terms()) {
    Dim product = term.coefficient;
    for (const auto& [name, power] : term.monomial) {
      sizes_.insert(name);
      const auto number = fixed_.find(name);
      Dim dim = number == fixed_.end() ? Dim(name) : Dim(number->second);
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

void InputDims::check_sizes(const std::string& file) const {
  for (const auto& [name, number] : fixed_) {
    if (sizes_.contains(name)) continue;
    const std::vector<std::string> known(sizes_.begin(), sizes_.end());
    throw UserError(fmt::format("{}: no input has a size named {}", file, name), "dim_unknown",
                    known.empty() ? "all sizes of its inputs are numbers"
                                  : fmt::format("its named sizes are {}", fmt::join(known, ", ")));
  }
}

}  // namespace lathe::importing
