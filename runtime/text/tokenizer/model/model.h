#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "runtime/text/tokenizer/model/token_table.h"
#include "runtime/text/tokenizer/model/word_cache.h"
#include "runtime/text/tokenizer/pipeline/fields.h"

namespace lathe::text {

/// A model of tokenizer.json: it makes tokens of words.
class Model {
 public:
  explicit Model(TokenTable tokens) : tokens_(std::move(tokens)) {}
  virtual ~Model() = default;

  const TokenTable& tokens() const { return tokens_; }
  /// Whether words of GPT-2's alphabet may be given as the bytes that they stand for.
  virtual bool takes_bytes() const { return false; }

  /// A token that shows the text which it stands for, not its own; -1: none.
  virtual TokenId transparent_token() const { return -1; }

  /// Appends the tokens of a word, which is not empty; their offsets count from its start. `is_bytes`: it is given as
  /// bytes. UserError [tokenizer_unk] for what has no token where the model has no token for the unknown.
  virtual void tokenize(std::string_view word, bool is_bytes, WordCache& cache,
                        std::vector<ModelToken>& out) const = 0;

 protected:
  /// The token for what is unknown. UserError [tokenizer_unk] where the vocabulary lacks it.
  TokenId unknown_token(const std::string& text) const;
  /// UserError [tokenizer_limit] if looking up the tokens of a word took too many steps, as long tokens make it do.
  static void check_steps(std::size_t steps, std::string_view word);

 private:
  TokenTable tokens_;
};

/// UserError [tokenizer_kind], [tokenizer_field], [tokenizer_vocab], [tokenizer_merge], [tokenizer_dropout].
std::unique_ptr<const Model> read_model(const JsonNode& place);

std::unique_ptr<const Model> read_bpe(const JsonNode& place);
std::unique_ptr<const Model> read_unigram(const JsonNode& place);
std::unique_ptr<const Model> read_word_piece(const JsonNode& place);
std::unique_ptr<const Model> read_word_level(const JsonNode& place);

}  // namespace lathe::text
