#include "codegen/cuda/names.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include <fmt/core.h>

#include "codegen/cuda/intrinsics/hooks.h"
#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/support/error.h"

namespace lathe::cuda {

std::string type_name(kernel::Type type) {
  if (type.lanes > 1) return fmt::format("vec<{}, {}>", name(type.scalar), type.lanes);
  return std::string(name(type.scalar));
}

namespace {

std::string real_text(DType dtype, double value) {
  const bool single = dtype == f32;
  if (std::isnan(value)) return single ? "from_bits(0x7fc00000)" : "from_bits(0x7ff8000000000000LL)";
  if (std::isinf(value))
    return fmt::format("{}{}", value < 0 ? "-" : "",
                       single ? "from_bits(0x7f800000)" : "from_bits(0x7ff0000000000000LL)");
  std::string text = single ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return single ? text + "f" : text;
}

std::string scalar_constant(const kernel::Instruction& in, bool in_int32) {
  switch (in_int32 && in.type.scalar == i64 ? i32 : in.type.scalar) {
    case DType::f64:
    case DType::f32: return real_text(in.type.scalar, in.real);
    case DType::bf16: return fmt::format("bf16{{0x{:04x}}}", kernel::bf16_bits(static_cast<float>(in.real)));
    case DType::f16: return fmt::format("f16{{0x{:04x}}}", kernel::f16_bits(static_cast<float>(in.real)));
    case DType::i8: return fmt::format("i8({})", in.integer);
    case DType::u8: return fmt::format("u8({})", in.integer);
    case DType::boolean: return in.integer ? "true" : "false";
    case DType::i64:
      // C++ has no literal for the smallest integer.
      if (in.integer == INT64_MIN) return "(-9223372036854775807LL - 1)";
      return fmt::format("{}LL", in.integer);
    case DType::i32: return in.integer == INT32_MIN ? "(-2147483647 - 1)" : fmt::format("{}", in.integer);
    case DType::c64:
    case DType::c128: break;
  }
  throw InternalError("a complex constant in a kernel");
}

/// Names that a kernel's own names must not shadow.
const std::set<std::string, std::less<>>& reserved() {
  static const std::set<std::string, std::less<>> words{
      // C++
      "alignas", "alignof", "and", "asm", "auto", "bool", "break", "case", "catch", "char", "class", "const",
      "continue", "default", "delete", "do", "double", "else", "enum", "explicit", "export", "extern", "false",
      "float", "for", "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new", "not",
      "operator", "or", "private", "protected", "public", "register", "return", "short", "signed", "sizeof", "static",
      "struct", "switch", "template", "this", "throw", "true", "try", "typedef", "typename", "union", "unsigned",
      "using", "virtual", "void", "volatile", "while", "xor", "concept", "requires", "constexpr", "decltype",
      "nullptr", "noexcept",
      // lathe.cuh, besides the scalar ops
      "lathe", "f32", "f64", "bf16", "f16", "i8", "u8", "i32", "i64", "u16", "u32", "u64", "vec", "broadcast",
      "bits_of", "from_bits", "fma", "fits", "widen", "ramp", "reduce", "shuffle", "load", "load_aligned",
      "load_strided", "gather", "load_if", "load_aligned_if", "load_strided_if", "gather_if", "store",
      "store_aligned", "store_strided", "scatter", "store_if", "store_strided_if", "scatter_if", "check", "prefetch",
      // CUDA and the emitter
      "threadIdx", "blockIdx", "blockDim", "gridDim", "status", "shared_memory"};
  return words;
}

/// Returns whether the text of intrinsics and regions uses this name.
bool is_intrinsic_word(std::string_view name) {
  const auto families = hook_families();
  return std::any_of(families.begin(), families.end(), [&](const HookFamily& family) {
    return std::find(family.words.begin(), family.words.end(), name) != family.words.end();
  });
}

/// Matches the emitter's own names: v0, r1, i2, j8.
bool is_local_name(std::string_view name) {
  if (name.size() < 2 || std::string_view("vrij").find(name[0]) == std::string_view::npos) return false;
  for (const char c : name.substr(1))
    if (!std::isdigit(static_cast<unsigned char>(c))) return false;
  return true;
}

}  // namespace

std::string index_name(int number) {
  const bool is_type = number == 8 || number == 32 || number == 64;
  return fmt::format("{}{}", is_type ? 'j' : 'i', number);
}

std::string constant_text(const kernel::Instruction& constant, bool in_int32) {
  const std::string text = scalar_constant(constant, in_int32);
  return constant.type.lanes > 1 ? fmt::format("broadcast<{}>({})", constant.type.lanes, text) : text;
}

std::string identifier(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool word = std::isalnum(static_cast<unsigned char>(c)) != 0 && static_cast<unsigned char>(c) < 128;
    // Names with two adjacent underscores are reserved.
    if (word || result.empty() || result.back() != '_') result += word ? c : '_';
  }
  if (result.empty() || std::isdigit(static_cast<unsigned char>(result[0]))) result = fmt::format("k{}", result);
  return result;
}

std::string comment_text(std::string_view text) {
  std::string result;
  for (const char c : text) result += static_cast<unsigned char>(c) < 32 ? ' ' : c == '\\' ? '/' : c;
  return result;
}

std::string UniqueNames::take(std::string_view wanted) {
  const std::string base = identifier(wanted);
  std::string result = base;
  for (int n = 2; reserved().contains(result) || parse_scalar_op(result) || is_intrinsic_word(result) ||
                  is_local_name(result) || !taken_.insert(result).second;
       ++n)
    result = fmt::format("{}_{}", base, n);
  return result;
}

}  // namespace lathe::cuda
