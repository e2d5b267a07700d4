#pragma once

#include <memory>

#include "runtime/text/tokenizer/normalize/aligned_text.h"
#include "runtime/text/tokenizer/pipeline/fields.h"
#include "runtime/text/tokenizer/unicode/regex.h"

namespace lathe::text {

/// A normalizer of tokenizer.json: it rewrites text between added tokens.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual AlignedText apply(AlignedText source, MatchMemory& memory) const = 0;
};

/// UserError [tokenizer_kind], [tokenizer_field], [tokenizer_regex], [tokenizer_charsmap].
std::unique_ptr<const Normalizer> read_normalizer(const JsonNode& place);

}  // namespace lathe::text
