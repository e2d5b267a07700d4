#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/tokenizer/tokenizer.h"

namespace lathe {

struct ByteLevelBpeOptions {
  std::size_t vocabulary_size = 8192;  ///< maximum number of tokens: special tokens, 256 bytes, merges
  std::int64_t least_count = 2;        ///< rarer pairs are not merged
  std::vector<std::string> special_tokens = {"<|endoftext|>"};
};

/// Learns a tokenizer like GPT-2's from a text (Sennrich et al. 2016, over bytes as in Radford et al. 2019). Words
/// are split by GPT-2's rule. Then the most frequent pair of adjacent tokens within words is repeatedly merged to a
/// new token; ties go to the lower ids. Ids match the library tokenizers: special tokens, the 256 bytes in the order
/// of their characters, the merges in order. Throws UserError [tokenizer_size] if the size is too small for special
/// tokens and bytes or if special tokens are empty or equal, and [tokenizer_text] for text that is not UTF-8.
Tokenizer learn_byte_level_bpe(std::string_view text, const ByteLevelBpeOptions& options = {});

}  // namespace lathe
