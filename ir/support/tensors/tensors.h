#pragma once

#include <functional>
#include <map>
#include <source_location>
#include <string>
#include <string_view>

#include "ir/support/tensors/host_tensor.h"

namespace lathe {

/// Tensors by name, sorted: arguments, states, the results of a run. It is a map whose at() says what there is.
class Tensors : public std::map<std::string, HostTensor, std::less<>> {
 public:
  using map::map;

  /// The tensor of this name. Throws UserError [tensor_unknown], at the caller's line, where there is none: it lists
  /// the names that there are and the nearest.
  HostTensor& at(std::string_view name, const std::source_location& where = std::source_location::current());
  const HostTensor& at(std::string_view name,
                       const std::source_location& where = std::source_location::current()) const;
};

}  // namespace lathe
