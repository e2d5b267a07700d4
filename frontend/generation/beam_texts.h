#pragma once

#include <span>
#include <string>

#include "frontend/decode/beam_search.h"
#include "frontend/generation/generation_options.h"
#include "runtime/text/tokenizer/tokenizer.h"

/// Beam searches of texts.
namespace lathe {

/// The search for a sequence of at most `longest` tokens, the first `opening` of which are given. It keeps `options`
/// and `tokenizer` by reference.
BeamOptions beam_options(const GenerationOptions& options, std::int64_t opening, std::int64_t longest,
                         const Tokenizer& tokenizer);

/// The text of generated tokens without the stop token at their end, up to the first stop string.
std::string text_of(const Tokenizer& tokenizer, std::span<const std::int64_t> tokens,
                    const GenerationOptions& options);

}  // namespace lathe
