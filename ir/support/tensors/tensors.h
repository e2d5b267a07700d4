#pragma once

#include <functional>
#include <map>
#include <source_location>
#include <string>
#include <string_view>

#include "ir/support/tensors/host_tensor.h"

namespace lathe {

/// Tensors by name, sorted: arguments, states, or results of a run. at() lists the existing names on failure. There
/// is no operator[], which would insert an empty tensor for a misspelled name.
class Tensors : private std::map<std::string, HostTensor, std::less<>> {
 public:
  using map::begin, map::end, map::cbegin, map::cend, map::rbegin, map::rend;
  using map::clear, map::emplace, map::erase, map::extract, map::insert, map::insert_or_assign, map::try_emplace;
  using map::const_iterator, map::iterator, map::key_type, map::mapped_type, map::size_type, map::value_type;
  using map::contains, map::count, map::empty, map::find, map::size;
  using map::map;

  /// Moves tensors here from another object, except those whose names exist here.
  void merge(Tensors from) { map::merge(static_cast<map&>(from)); }
  /// Returns the tensor of this name. Throws UserError [tensor_unknown] at the caller's line if it does not exist,
  /// listing the existing names and the nearest. Moves the tensor out of a temporary, such as the result of a run.
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
