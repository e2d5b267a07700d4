#include "ir/support/tensors/tensors.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "ir/support/error.h"
#include "ir/support/nearest.h"

namespace lathe {

namespace {

/// Returns "there are: logits, loss; did you mean 'logits'?".
std::string offer(const Tensors& tensors, std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& [key, tensor] : tensors) names.push_back(key);
  const std::string better = did_you_mean(name, names);
  return fmt::format("there are: {}{}{}", list_of(names), better.empty() ? "" : "; ", better);
}

}  // namespace

const HostTensor& Tensors::at(std::string_view name, const std::source_location& where) const& {
  const auto found = find(name);
  if (found == end())
    throw UserError(Location(where), "at", fmt::format("there is no tensor named {}", name), "tensor_unknown",
                    offer(*this, name));
  return found->second;
}

HostTensor& Tensors::at(std::string_view name, const std::source_location& where) & {
  return const_cast<HostTensor&>(std::as_const(*this).at(name, where));
}

HostTensor Tensors::at(std::string_view name, const std::source_location& where) && {
  return std::move(at(name, where));
}

HostTensor& Tensors::set(std::string_view name, HostTensor value) {
  return insert_or_assign(std::string(name), std::move(value)).first->second;
}

}  // namespace lathe
