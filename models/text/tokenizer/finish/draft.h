#pragma once

#include <vector>

#include "models/text/tokenizer/encoding.h"

namespace lathe::text {

/// Numbers of spaces at the ends of a token's text.
struct Edges {
  std::uint32_t leading = 0, trailing = 0;
};

/// An encoding during truncation and post-processing.
struct Draft {
  Encoding encoding;
  std::vector<Edges> edges;  ///< of each token, if needed
  std::vector<Draft> overflow;

  std::size_t size() const { return encoding.size(); }
};

/// Tokens [begin, end) without overflow.
Draft slice(const Draft& draft, std::size_t begin, std::size_t end);

/// Appends a draft. Each part of one draft's overflow is combined with the other draft and with each part of its
/// overflow. Throws UserError [tokenizer_truncation] if that makes far more tokens than the texts have.
void append(Draft& to, const Draft& from);

/// Truncates a draft to `length` tokens. The rest becomes overflow in parts that share `stride` tokens. Throws
/// UserError [tokenizer_truncation] unless the stride is below the length, or if the parts have far more tokens than
/// the text.
void cut(Draft& draft, std::size_t length, const Truncation& how);

/// Truncates one or two drafts to how.max_length - `reserved` tokens in total. Throws UserError
/// [tokenizer_truncation].
void truncate(std::vector<Draft>& drafts, const Truncation& how, std::size_t reserved);

/// Returns the encoding, including the overflow.
Encoding finish(Draft draft);

}  // namespace lathe::text
