#pragma once

#include <memory>

#include "models/text/tokenizer/pipeline/fields.h"
#include "models/text/tokenizer/split/words.h"
#include "models/text/tokenizer/unicode/regex.h"

namespace lathe::text {

/// A pre-tokenizer of tokenizer.json. It splits text into words and may rewrite them.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(Words& words, MatchMemory& memory) const = 0;
};

/// `model_takes_bytes`: the model reads words in GPT-2's alphabet as bytes, so the alphabet is not written out unless
/// another stage needs it. Throws UserError [tokenizer_kind], [tokenizer_field], [tokenizer_regex].
std::unique_ptr<const PreTokenizer> read_pre_tokenizer(const JsonNode& place, bool model_takes_bytes);

/// Returns a pre-tokenizer that splits into words of one script each (UnicodeScripts).
std::unique_ptr<const PreTokenizer> make_script_splitter();

}  // namespace lathe::text
