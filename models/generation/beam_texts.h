#pragma once

#include <span>
#include <string>

#include "frontend/decode/beam_search.h"
#include "models/generation/generation_options.h"
#include "models/text/tokenizer/tokenizer.h"

/// Beam searches of texts.
namespace lathe {

/// Returns the search options for a sequence of at most `longest` tokens, of which the first `opening` are given. The
/// result refers to `options` and `tokenizer`, which must outlive it.
BeamOptions beam_options(const GenerationOptions& options, std::int64_t opening, std::int64_t longest,
                         const Tokenizer& tokenizer);

/// Returns the text of generated tokens up to the first stop string, without a final stop token.
std::string text_of(const Tokenizer& tokenizer, std::span<const std::int64_t> tokens,
                    const GenerationOptions& options);

}  // namespace lathe
