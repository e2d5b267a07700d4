#pragma once

#include <functional>
#include <map>
#include <source_location>
#include <string>
#include <string_view>

#include "ir/support/tensors/host_tensor.h"

namespace lathe {

/// Tensors by name, sorted: arguments, states, the results of a run. A map whose at() lists the names that exist, and
/// without the operator[] that makes an empty tensor of a misspelled name.
class Tensors : public std::map<std::string, HostTensor, std::less<>> {
 public:
  using map::map;

  /// The tensor of this name. Throws UserError [tensor_unknown], at the caller's line, where there is none: it lists
  /// the existing names and the nearest. Of a temporary, such as the result of a run, it is moved out.
  HostTensor& at(std::string_view name, const std::source_location& where = std::source_location::current()) &;
  const HostTensor& at(std::string_view name,
                       const std::source_location& where = std::source_location::current()) const&;
  HostTensor at(std::string_view name, const std::source_location& where = std::source_location::current()) &&;
  const HostTensor& at(std::string_view name,
                       const std::source_location& where = std::source_location::current()) const&& = delete;
  /// Inserts a tensor, or replaces the one of this name.
  HostTensor& set(std::string_view name, HostTensor value);

  template <class Name>
  auto operator[](const Name&) const {
    static_assert(sizeof(Name) == 0, "Tensors has no operator[]: at(name) reads, set(name, tensor) inserts");
    return HostTensor();
  }
};

}  // namespace lathe
