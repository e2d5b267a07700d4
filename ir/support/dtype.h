#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lathe {

/// Element types. bf16 and f16 are storage types, computed in f32; boolean is one byte, 0 or 1. i8 and u8 are storage
/// types: they are converted, moved, and compared as i32.
enum class DType : std::uint8_t { f64, f32, bf16, f16, i64, i32, boolean, c64, c128, i8, u8 };

inline constexpr DType f64 = DType::f64, f32 = DType::f32, bf16 = DType::bf16, f16 = DType::f16, i64 = DType::i64,
                       i32 = DType::i32, i8 = DType::i8, u8 = DType::u8, boolean = DType::boolean, c64 = DType::c64,
                       c128 = DType::c128;

inline constexpr DType all_dtypes[] = {f64, f32, bf16, f16, i64, i32, boolean, c64, c128, i8, u8};

/// Returns "f32", "bool", ... as printed in IR text.
std::string_view name(DType dtype);
std::optional<DType> parse_dtype(std::string_view text);

std::size_t size_in_bytes(DType dtype);
bool is_float(DType dtype);    ///< f64, f32, bf16, f16
bool is_integer(DType dtype);  ///< i64, i32: the integers with arithmetic
bool is_byte(DType dtype);     ///< i8, u8
bool is_complex(DType dtype);  ///< c64, c128
/// Returns f64 for f64, else f32: the dtype of losses, optimizer arithmetic and reported numbers.
constexpr DType at_least_f32(DType dtype) { return dtype == f64 ? f64 : f32; }
/// The smallest and largest value of i64, i32, i8 or u8.
struct IntegerLimits {
  std::int64_t lowest, highest;
};
IntegerLimits integer_limits(DType dtype);
/// Returns the real type of a complex type's parts: c64 -> f32, c128 -> f64.
DType real_part(DType dtype);
/// Returns the complex type with parts of this type: f32 -> c64, f64 -> c128.
std::optional<DType> complex_of(DType dtype);

}  // namespace lathe
