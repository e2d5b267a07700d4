#pragma once

#include <vector>

#include "runtime/text/tokenizer/encoding.h"

namespace lathe::text {

/// The spaces at the ends of a token's text.
struct Edges {
  std::uint32_t leading = 0, trailing = 0;
};

/// An encoding on its way through truncation and post-processing.
struct Draft {
  Encoding encoding;
  std::vector<Edges> edges;  ///< of each token, where they are needed
  std::vector<Draft> overflow;

  std::size_t size() const { return encoding.size(); }
};

/// Tokens [begin, end) without overflow.
Draft slice(const Draft& draft, std::size_t begin, std::size_t end);

/// Appends a draft. Each part of one's overflow goes with the other and with each part of the other's overflow.
/// UserError [tokenizer_truncation] for far more tokens than the texts have.
void append(Draft& to, const Draft& from);

/// Cuts a draft to `length` tokens; what goes becomes overflow in parts that share `stride` tokens. UserError
/// [tokenizer_truncation] for a stride that is not below the length, or so close to it that the parts have far more
/// tokens than the text.
void cut(Draft& draft, std::size_t length, const Truncation& how);

/// Cuts one draft or two to how.max_length tokens less `reserved`. UserError [tokenizer_truncation].
void truncate(std::vector<Draft>& drafts, const Truncation& how, std::size_t reserved);

/// With the overflow in the encoding.
Encoding finish(Draft draft);

}  // namespace lathe::text
