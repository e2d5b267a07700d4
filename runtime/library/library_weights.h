#pragma once

#include <map>
#include <string>
#include <string_view>

#include "ir/support/tensors/host_tensor.h"

namespace lathe {

/// The bytes of embedded parameters and of constants, and where they are in codegen::Library::weights.
class LibraryWeights {
 public:
  void add_parameter(const std::string& name, const HostTensor& value) { place_of_[name] = append(bytes_of(value)); }
  std::int64_t place_of(const std::string& parameter) const { return place_of_.at(parameter); }
  /// Adds a constant, and returns where it starts. Equal constants have one place.
  std::int64_t add_constant(const HostTensor& value) {
    const auto [place, is_new] = constants_.try_emplace(std::string(bytes_of(value)));
    if (is_new) place->second = append(bytes_of(value));
    return place->second;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  static std::string_view bytes_of(const HostTensor& value) {
    return {reinterpret_cast<const char*>(value.data()), value.bytes()};
  }
  std::int64_t append(std::string_view data) {
    constexpr std::size_t alignment = 64;
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
    const auto place = static_cast<std::int64_t>(bytes_.size());
    bytes_ += data;
    return place;
  }

  std::string bytes_;
  std::map<std::string, std::int64_t> place_of_, constants_;
};

}  // namespace lathe
