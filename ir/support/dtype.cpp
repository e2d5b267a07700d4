#include "ir/support/dtype.h"

#include "ir/support/error.h"

namespace lathe {

std::string_view name(DType dtype) {
  switch (dtype) {
    case DType::f64: return "f64";
    case DType::f32: return "f32";
    case DType::bf16: return "bf16";
    case DType::f16: return "f16";
    case DType::i64: return "i64";
    case DType::i32: return "i32";
    case DType::i8: return "i8";
    case DType::u8: return "u8";
    case DType::boolean: return "bool";
    case DType::c64: return "c64";
    case DType::c128: return "c128";
  }
  throw InternalError("a dtype out of range");
}

std::optional<DType> parse_dtype(std::string_view text) {
  for (const DType dtype : all_dtypes)
    if (name(dtype) == text) return dtype;
  return std::nullopt;
}

std::size_t size_in_bytes(DType dtype) {
  switch (dtype) {
    case DType::f64: return 8;
    case DType::f32: return 4;
    case DType::bf16: return 2;
    case DType::f16: return 2;
    case DType::i64: return 8;
    case DType::i32: return 4;
    case DType::i8: return 1;
    case DType::u8: return 1;
    case DType::boolean: return 1;
    case DType::c64: return 8;
    case DType::c128: return 16;
  }
  throw InternalError("a dtype out of range");
}

bool is_float(DType dtype) { return dtype == f64 || dtype == f32 || dtype == bf16 || dtype == f16; }
bool is_integer(DType dtype) { return dtype == i64 || dtype == i32; }
bool is_byte(DType dtype) { return dtype == i8 || dtype == u8; }
bool is_complex(DType dtype) { return dtype == c64 || dtype == c128; }

IntegerLimits integer_limits(DType dtype) {
  LATHE_ASSERT(is_integer(dtype) || is_byte(dtype));
  if (dtype == u8) return {0, UINT8_MAX};
  if (dtype == i8) return {INT8_MIN, INT8_MAX};
  if (dtype == i32) return {INT32_MIN, INT32_MAX};
  return {INT64_MIN, INT64_MAX};
}

DType real_part(DType dtype) {
  LATHE_ASSERT(is_complex(dtype));
  return dtype == c64 ? f32 : f64;
}

std::optional<DType> complex_of(DType dtype) {
  if (dtype == f32) return c64;
  if (dtype == f64) return c128;
  return std::nullopt;
}

}  // namespace lathe
