#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/support/dtype.h"
#include "ir/tensor/op/attribute.h"

/// The parts of an op's record that user-defined ops have too.
namespace lathe::ir {

struct Arity {
  int min, max;  ///< max -1: unlimited
};

struct AttrSpec {
  std::string_view name;
  AttrKind kind;
  bool required;
  std::variant<std::monostate, bool, std::int64_t, double, std::string_view> fallback;  ///< unless required
  std::string_view doc;
};

/// One operand of a sample: its type, and the range of its random values.
struct SampleOperand {
  std::vector<std::int64_t> sizes;
  DType dtype = f64;
  double low = -2, high = 2;
  double diagonal = 0;  ///< added to the diagonal of the last two dims, so that matrices are well conditioned
};
/// A small valid use of an op, for the all-ops test and the fuzzer.
struct Sample {
  std::vector<SampleOperand> operands;
  Attributes attrs;
};

/// The dtype in which mixed precision (passes/transforms/dtypes/mixed_precision.h) computes an op of f32 values.
/// Lathe's ops have the class that torch.autocast assigns.
enum class MixedPrecision : std::uint8_t {
  low_precision,  ///< bf16 or f16: matmuls, which are faster in it and accumulate in f32
  f32,            ///< f32: sums, norms, softmax, losses, and functions that overflow or amplify rounding errors
  follow,         ///< dtype of the operands: low precision if all of them are, f32 if any is
  expansion,      ///< as the ops of its expansion: f32 if any is, else low precision if any is, else follow
};

}  // namespace lathe::ir
