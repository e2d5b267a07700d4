#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/dtype.h"

namespace lathe::safetensors {

inline constexpr std::uint64_t max_header_bytes = 100'000'000;
inline constexpr std::size_t max_rank = 32, max_name_bytes = 4096, max_tensors = 1'000'000;
inline constexpr std::string_view metadata_key = "__metadata__";

/// A dtype of the format; `dtype` is empty where Lathe has none such.
struct FileDType {
  std::string_view name;
  std::uint64_t bytes = 0;
  std::optional<DType> dtype;
};
const FileDType* find_dtype(std::string_view name);
const FileDType& file_dtype(DType dtype);

struct Entry {
  std::string name;
  const FileDType* dtype = nullptr;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;
};

struct Header {
  std::vector<Entry> entries;  ///< in the order of their data
  std::map<std::string, std::string> metadata;
};

/// Parses and checks a header that stands before `data_bytes` bytes of data. `file` is for messages. Throws UserError
/// as safetensors.h lists them.
Header parse_header(std::string_view text, std::uint64_t data_bytes, std::string_view file);

}  // namespace lathe::safetensors
