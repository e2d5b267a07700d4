#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/tokenizer/tokenizer.h"

namespace lathe {

struct ByteLevelBpeOptions {
  std::size_t vocabulary_size = 8192;  ///< tokens at most: special ones, 256 bytes, merges
  std::int64_t least_count = 2;        ///< a pair that is rarer is not merged
  std::vector<std::string> special_tokens = {"<|endoftext|>"};
};

/// Learns a tokenizer as GPT-2's from a text (Sennrich et al. 2016, over bytes as Radford et al. 2019): words are
/// split by GPT-2's rule, and of all neighbouring tokens within words the most frequent pair becomes a token, of
/// equally frequent ones that of the lower ids, again and again. Ids are those of the library tokenizers: special
/// tokens, the 256 bytes in the order of their characters, then the merges in turn. UserErrors [tokenizer_size] for
/// fewer tokens than special ones and bytes, or special tokens that are empty or equal; [tokenizer_text] for what is
/// not UTF-8.
Tokenizer learn_byte_level_bpe(std::string_view text, const ByteLevelBpeOptions& options = {});

}  // namespace lathe
