#include "runtime/library/library_machine.h"

#include "ir/kernel/printer.h"

namespace lathe {

int LibraryKernels::add(const kernel::Kernel& kernel, const std::string& options) {
  const auto [entry, is_new] =
      number_of_.try_emplace(options + kernel::canonical_text(kernel), static_cast<int>(kernels_.size()));
  if (is_new) {
    kernels_.push_back(kernel);
    options_.push_back(options);
  }
  return entry->second;
}

int LibraryKernels::add(const Program& program, int kernel, const std::string& options) {
  const auto [entry, is_new] = number_in_.try_emplace({&program, kernel, options});
  if (is_new) entry->second = add(program.kernels[kernel], options);
  return entry->second;
}

SizeBounds bounds_of(const Dim& size, const DimBindings& most) {
  Dim positive = 0, negative = 0, constant = 0;
  for (const Dim::Term& term : size.terms()) {
    Dim product = 1;
    for (const auto& [unknown, power] : term.monomial)
      for (int i = 0; i < power; ++i) product = product * Dim(unknown);
    if (term.monomial.empty())
      constant = constant + term.coefficient;
    else if (term.coefficient > 0)
      positive = positive + product * term.coefficient;
    else
      negative = negative + product * -term.coefficient;
  }
  return {(constant - negative).evaluate(most), (positive + constant).evaluate(most)};
}

}  // namespace lathe
