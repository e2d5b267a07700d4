#pragma once

#include <memory>

#include "models/text/tokenizer/decode/decoder.h"

namespace lathe::text {

/// Returns a stage that removes spaces before punctuation and in English contractions from the whole text, like
/// transformers with clean_up_tokenization_spaces. Its output goes to `next`.
std::unique_ptr<DecodeStage> start_clean_up(std::unique_ptr<DecodeStage> next);

}  // namespace lathe::text
