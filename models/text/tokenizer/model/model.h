#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "models/text/tokenizer/model/token_table.h"
#include "models/text/tokenizer/model/word_cache.h"
#include "models/text/tokenizer/pipeline/fields.h"

namespace lathe::text {

/// A model of tokenizer.json. It splits words into tokens.
class Model {
 public:
  explicit Model(TokenTable tokens) : tokens_(std::move(tokens)) {}
  virtual ~Model() = default;

  const TokenTable& tokens() const { return tokens_; }
  /// Returns whether words in GPT-2's alphabet may be passed as the bytes that they represent.
  virtual bool takes_bytes() const { return false; }

  /// Returns the token whose decoded text is the text it was made from, not its own; -1 if there is none.
  virtual TokenId transparent_token() const { return -1; }

  /// Appends the tokens of a nonempty word, with offsets relative to its start. `is_bytes`: the word is given as
  /// bytes. Throws UserError [tokenizer_unk] for characters without a token if the model has no unknown token.
  virtual void tokenize(std::string_view word, bool is_bytes, WordCache& cache,
                        std::vector<ModelToken>& out) const = 0;

 protected:
  /// Returns the unknown token. Throws UserError [tokenizer_unk] if it is not in the vocabulary.
  TokenId unknown_token(const std::string& text) const;
  /// Throws UserError [tokenizer_limit] if tokenizing a word took too many steps, which very long tokens can cause.
  static void check_steps(std::size_t steps, std::string_view word);

 private:
  TokenTable tokens_;
};

/// Throws UserError [tokenizer_kind], [tokenizer_field], [tokenizer_vocab], [tokenizer_merge], [tokenizer_dropout].
std::unique_ptr<const Model> read_model(const JsonNode& place);

std::unique_ptr<const Model> read_bpe(const JsonNode& place);
std::unique_ptr<const Model> read_unigram(const JsonNode& place);
std::unique_ptr<const Model> read_word_piece(const JsonNode& place);
std::unique_ptr<const Model> read_word_level(const JsonNode& place);

}  // namespace lathe::text
