#pragma once

#include <cstdint>
#include <string>

#include "ir/support/dtype.h"

namespace lathe {

/// The architecture of a new language model.
struct TextModelOptions {
  std::string kind = "llama";  ///< "llama" or "gpt"
  std::int64_t layers = 6, d_model = 384, heads = 6;
  std::int64_t context = 64;  ///< characters or tokens per sequence
  double dropout = 0;         ///< only of "gpt"
  DType precision = f32;      ///< bf16 and f16: mixed precision
};

}  // namespace lathe
