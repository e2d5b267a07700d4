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

#include "runtime/text/tokenizer/added_token.h"
#include "runtime/text/tokenizer/encoding.h"

namespace lathe {

/// `text` with U+FFFD for each longest start of a character that does not go on, and for each other byte that is not
/// part of UTF-8.
std::string replace_invalid_utf8(std::string_view text);

struct EncodeOptions {
  bool special_tokens = true;  ///< the post-processor adds its own
  bool offsets = true;         ///< Encoding::offsets and Encoding::words are filled
  /// Nothing: whatever the length. What tokenizer.json asks for is Tokenizer::truncation().
  std::optional<Truncation> truncation = {};
  /// Nothing: no padding. What tokenizer.json asks for is Tokenizer::padding().
  std::optional<Padding> padding = {};
};

/// The tokenizer of a tokenizer.json: text to token ids and back, id for id as the library tokenizers does. It is
/// immutable, cheap to copy, and any number of threads can use one. Faults of a file are UserErrors that name the
/// file and the place in it:
///   [file_open], [file_read], [file_too_large]  the file cannot be read
///   [json]                    no JSON, or a key twice
///   [tokenizer_field]         a field that is missing, unknown or of the wrong type
///   [tokenizer_kind]          a part of a type that is not known
///   [tokenizer_vocab]         a vocabulary with an id twice or far outside
///   [tokenizer_merge]         a merge of tokens that are not in the vocabulary
///   [tokenizer_regex]         a regular expression that is malformed, not supported, or does not end on a text
///   [tokenizer_charsmap]      a character map that is not SentencePiece's
///   [tokenizer_template]      a template of unknown special tokens or texts
///   [tokenizer_dropout]       merges that drop out at random
/// and of a text:
///   [tokenizer_text]          not UTF-8, or 4 GiB and more
///   [tokenizer_unk]           a character without a token, where the model has none for the unknown
///   [tokenizer_range]         a token that a model has no embedding for (for_embeddings())
///   [tokenizer_limit]         steps that make far more text than was given, or tokens that take too long to find
///   [tokenizer_truncation]    no room for the special tokens, or a stride that is not below the length
class Tokenizer {
 public:
  /// Reads a tokenizer.json, or that of a directory together with its tokenizer_config.json and
  /// special_tokens_map.json: as in transformers, special tokens that tokenizer.json lacks are added to it. UserError
  /// [config_value] for settings that contradict tokenizer.json, or that Lathe does not follow.
  static Tokenizer load(const std::filesystem::path& path);
  /// `json`: what stands in a tokenizer.json. `name` is for messages.
  static Tokenizer parse(std::string json, const std::string& name);

  /// The same tokenizer for a model that has embeddings of ids 0 .. count - 1: texts with other tokens are errors.
  /// (Vocabularies may be larger than models, as those of images and texts are than their text models.)
  Tokenizer for_embeddings(std::int64_t count) const;

  /// `text` is UTF-8; offsets count its code points. With padding, the text is a batch of its own.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
  /// Two texts in one encoding, as the post-processor puts them together.
  Encoding encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options = {}) const;
  /// With padding, all become as long as the longest.
  std::vector<Encoding> encode_batch(std::span<const std::string_view> texts,
                                     const EncodeOptions& options = {}) const;

  /// The text of tokens, always UTF-8: bytes that are not become U+FFFD. Ids without a token have no text.
  std::string decode(std::span<const TokenId> ids, bool skip_special = true) const;

  /// Decodes tokens as they come. All pieces together are what decode() gives for all tokens.
  class Stream {
   public:
    Stream(Stream&&) noexcept;
    Stream& operator=(Stream&&) noexcept;
    ~Stream();
    /// The text that is decided by now: whole characters, which no later token changes.
    std::string push(TokenId id);
    /// What is left. No token follows.
    std::string finish();

   private:
    friend class Tokenizer;
    struct Content;
    explicit Stream(std::unique_ptr<Content> content);
    std::unique_ptr<Content> content_;
  };
  Stream stream(bool skip_special = true) const;

  std::optional<TokenId> id_of(std::string_view token) const;
  /// The token as the vocabulary writes it, such as "Ġthe"; nothing where there is none.
  std::optional<std::string> token_of(TokenId id) const;
  bool is_special(TokenId id) const;
  /// How many tokens there are, added ones included.
  std::size_t vocabulary_size() const;
  /// One more than the highest id.
  TokenId end_id() const;
  /// By their ids.
  std::vector<AddedToken> added_tokens() const;
  /// What tokenizer.json asks for; encode() does it only when told.
  const std::optional<Truncation>& truncation() const;
  const std::optional<Padding>& padding() const;
  /// "truncation_side" of tokenizer_config.json; right without one.
  Side truncation_side() const;

  /// The words that the model would make tokens of, as it sees them; for learning.
  std::vector<std::string> words_of(std::string_view text) const;

  /// The tokenizer.json that the tokenizer was made of, byte for byte.
  const std::string& json() const;
  /// Writes it. UserError [file_write].
  void save(const std::filesystem::path& path) const;

 private:
  struct Content;
  explicit Tokenizer(std::shared_ptr<const Content> content) : content_(std::move(content)) {}
  void check(std::span<const Encoding> encodings) const;

  std::shared_ptr<const Content> content_;
  std::int64_t embeddings_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace lathe
