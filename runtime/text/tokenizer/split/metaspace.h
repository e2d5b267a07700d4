#pragma once

#include "runtime/text/tokenizer/pipeline/fields.h"

namespace lathe::text {

/// The settings of Metaspace, which is a pre-tokenizer and a decoder.
struct Metaspace {
  enum class Scheme { first, never, always };

  /// Reads both the old spelling, with add_prefix_space, and the new one, with prepend_scheme. UserError
  /// [tokenizer_field].
  explicit Metaspace(const JsonNode& place);

  char32_t replacement = U'\u2581';
  Scheme scheme = Scheme::always;  ///< which words get the character in front
  bool splits = true;
};

}  // namespace lathe::text
