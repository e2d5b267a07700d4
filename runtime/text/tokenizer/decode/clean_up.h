#pragma once

#include <memory>

#include "runtime/text/tokenizer/decode/decoder.h"

namespace lathe::text {

/// Removes spaces before punctuation and in English contractions from the whole text, as transformers does for
/// clean_up_tokenization_spaces. The result goes to `next`.
std::unique_ptr<DecodeStage> start_clean_up(std::unique_ptr<DecodeStage> next);

}  // namespace lathe::text
