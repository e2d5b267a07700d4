#pragma once

#include "models/text/tokenizer/pipeline/fields.h"

namespace lathe::text {

/// Settings of Metaspace, which is a pre-tokenizer and a decoder.
struct Metaspace {
  enum class Scheme { first, never, always };

  /// Reads the old form with add_prefix_space and the new form with prepend_scheme. Throws UserError
  /// [tokenizer_field].
  explicit Metaspace(const JsonNode& place);

  char32_t replacement = U'\u2581';
  Scheme scheme = Scheme::always;  ///< words to which the character is prepended
  bool splits = true;
};

}  // namespace lathe::text
