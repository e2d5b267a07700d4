#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/dtype.h"

namespace lathe {

inline constexpr std::uint64_t max_safetensors_header_bytes = 100'000'000;
inline constexpr std::size_t max_safetensors_rank = 32, max_safetensors_name_bytes = 4096,
                             max_safetensors_tensors = 1'000'000;
inline constexpr std::string_view safetensors_metadata_key = "__metadata__";

/// A dtype of the format; `dtype` is empty if Lathe does not support it.
struct SafetensorsDType {
  std::string_view name;
  std::uint64_t bytes = 0;
  std::optional<DType> dtype;
};
const SafetensorsDType* find_safetensors_dtype(std::string_view name);
const SafetensorsDType& safetensors_dtype(DType dtype);

struct SafetensorsEntry {
  std::string name;
  const SafetensorsDType* dtype = nullptr;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  ///< in the order of their data
  std::map<std::string, std::string> metadata;
};

/// Parses and checks a header that is followed by `data_bytes` bytes of data. `file` is used in messages. Throws the
/// UserErrors of safetensors.h.
SafetensorsHeader parse_safetensors_header(std::string_view text, std::uint64_t data_bytes, std::string_view file);

}  // namespace lathe
