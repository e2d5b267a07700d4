#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/support/dtype.h"

namespace lathe {

/// The header of an array of NumPy, in a .npy file.
struct NpyHeader {
  DType dtype = f32;
  std::vector<std::int64_t> shape;
  bool is_column_major = false;  ///< the first dim varies fastest
  std::size_t size = 0;          ///< bytes of the header, before the elements
};

/// Reads the header at the start of a file. `owner` is named in errors: "data.npz: the array 'x'". Throws UserErrors
/// [npz_header] for a damaged header, or another version than 1 to 3, and [npz_dtype] for elements that Lathe does
/// not have, such as texts and objects.
NpyHeader read_npy_header(std::span<const std::byte> file, const std::string& owner);

/// Returns the header of a row-major array, padded to a multiple of 64 bytes. Throws UserError [npz_dtype] for bf16,
/// which NumPy does not have.
std::string npy_header(DType dtype, const std::vector<std::int64_t>& shape, const std::string& owner);

}  // namespace lathe
