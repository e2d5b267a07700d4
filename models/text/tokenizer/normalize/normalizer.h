#pragma once

#include <memory>
#include <string>

#include "models/text/tokenizer/normalize/aligned_text.h"
#include "models/text/tokenizer/pipeline/fields.h"
#include "models/text/tokenizer/unicode/regex.h"

namespace lathe::text {

/// A normalizer of tokenizer.json. It rewrites the text between added tokens.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// Throws UserError [tokenizer_limit], naming the normalizer, if the output exceeds the budget of `memory`.
  AlignedText apply(AlignedText source, MatchMemory& memory) const;

 protected:
  virtual AlignedText rewrite(AlignedText source, MatchMemory& memory) const = 0;
  /// Returns the position in tokenizer.json, for messages.
  const std::string& place() const { return place_; }

 private:
  friend std::unique_ptr<const Normalizer> read_normalizer(const JsonNode& place);
  std::string place_;
};

/// Throws UserError [tokenizer_kind], [tokenizer_field], [tokenizer_regex], [tokenizer_charsmap].
std::unique_ptr<const Normalizer> read_normalizer(const JsonNode& place);

}  // namespace lathe::text
