#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/tokenizer/added_token.h"
#include "models/text/tokenizer/encoding.h"

namespace lathe {

/// Returns `text` with U+FFFD for each maximal prefix of an incomplete character and for each other byte that is not
/// valid UTF-8.
std::string replace_invalid_utf8(std::string_view text);

struct EncodeOptions {
  bool special_tokens = true;  ///< let the post-processor add its special tokens
  bool offsets = true;         ///< fill Encoding::offsets and Encoding::words
  /// Default: no truncation. Tokenizer::truncation() returns the setting of tokenizer.json.
  std::optional<Truncation> truncation = {};
  /// Default: no padding. Tokenizer::padding() returns the setting of tokenizer.json.
  std::optional<Padding> padding = {};
};

/// A tokenizer that is defined by a tokenizer.json: converts text to token ids and back, with the same ids as the
/// library tokenizers. It is immutable, cheap to copy, and thread-safe. Invalid files throw UserErrors that name the
/// file and the position in it:
///   [file_open], [file_read], [file_too_large]  the file cannot be read
///   [json]                    not JSON, or a repeated key
///   [tokenizer_field]         a field is missing, unknown or of the wrong type
///   [tokenizer_kind]          an unknown type of normalizer, model, ...
///   [tokenizer_vocab]         a vocabulary with a repeated id or an id far out of range
///   [tokenizer_merge]         a merge of tokens that are not in the vocabulary
///   [tokenizer_regex]         a regular expression that is malformed, not supported, or does not end on a text
///   [tokenizer_charsmap]      not a character map of SentencePiece
///   [tokenizer_template]      a template with unknown special tokens or texts
///   [tokenizer_dropout]       a model with random merge dropout
/// Invalid texts throw:
///   [tokenizer_text]          not UTF-8, or 4 GiB and more
///   [tokenizer_unk]           a character without a token, if the model has no unknown token
///   [tokenizer_range]         a token without an embedding in the model (for_embeddings())
///   [tokenizer_limit]         far more output than input, or tokens that take too long to find
///   [tokenizer_truncation]    no room for the special tokens, or a stride that is not below the length
class Tokenizer {
 public:
  /// Reads a tokenizer.json, or that of a directory with its tokenizer_config.json and special_tokens_map.json. As in
  /// transformers, special tokens that are missing in tokenizer.json are added. Throws UserError [config_value] for
  /// settings that contradict tokenizer.json or are not supported.
  static Tokenizer load(const std::filesystem::path& path);
  /// Parses the content of a tokenizer.json. `name` is used in messages.
  static Tokenizer parse(std::string json, const std::string& name);

  /// Returns the tokenizer for a model with embeddings of ids 0 .. count - 1. Texts with other tokens throw. (A
  /// vocabulary may be larger than a model, for example if it also has image tokens.)
  Tokenizer for_embeddings(std::int64_t count) const;

  /// Encodes `text`, which must be UTF-8. Offsets count code points. Padding treats the text as a batch of one.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
  /// Encodes two texts into one encoding, combined by the post-processor.
  Encoding encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options = {}) const;
  /// Encodes several texts. Padding extends all to the length of the longest.
  std::vector<Encoding> encode_batch(std::span<const std::string_view> texts,
                                     const EncodeOptions& options = {}) const;

  /// Returns the text of tokens as valid UTF-8: invalid bytes become U+FFFD. Ids without a token are ignored.
  std::string decode(std::span<const TokenId> ids, bool skip_special = true) const;

  /// Decodes tokens incrementally. The concatenated pieces equal the output of decode() for all tokens.
  class Stream {
   public:
    Stream(Stream&&) noexcept;
    Stream& operator=(Stream&&) noexcept;
    ~Stream();
    /// Returns the text that no later token can change, as whole characters.
    std::string push(TokenId id);
    /// Returns the remaining text. No token may follow.
    std::string finish();

   private:
    friend class Tokenizer;
    struct Content;
    explicit Stream(std::unique_ptr<Content> content);
    std::unique_ptr<Content> content_;
  };
  Stream stream(bool skip_special = true) const;

  std::optional<TokenId> id_of(std::string_view token) const;
  /// Returns the token as in the vocabulary, such as "Ġthe"; nullopt if there is none.
  std::optional<std::string> token_of(TokenId id) const;
  bool is_special(TokenId id) const;
  /// Returns the number of tokens, including added ones.
  std::size_t vocabulary_size() const;
  /// Returns the highest id + 1.
  TokenId end_id() const;
  /// Returns the added tokens in the order of their ids.
  std::vector<AddedToken> added_tokens() const;
  /// Return the settings of tokenizer.json. encode() applies them only if they are passed in its options.
  const std::optional<Truncation>& truncation() const;
  const std::optional<Padding>& padding() const;
  /// Returns "truncation_side" of tokenizer_config.json; right by default.
  Side truncation_side() const;

  /// Returns the words that the model would tokenize, as it sees them. Used for learning.
  std::vector<std::string> words_of(std::string_view text) const;

  /// Returns the tokenizer.json from which the tokenizer was created, byte for byte.
  const std::string& json() const;
  /// Writes the tokenizer.json. Throws UserError [file_write].
  void save(const std::filesystem::path& path) const;

 private:
  struct Content;
  explicit Tokenizer(std::shared_ptr<const Content> content) : content_(std::move(content)) {}
  void check(std::span<const Encoding> encodings) const;

  std::shared_ptr<const Content> content_;
  std::int64_t embeddings_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace lathe
