#include "models/finetune/new_model/text_codec.h"

#include <fmt/core.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "ir/support/error.h"
#include "models/text/tokenizer/learn/byte_level_bpe.h"
#include "runtime/files/sha256.h"
#include "runtime/files/write/atomic_file.h"

namespace lathe {

namespace {

constexpr std::string_view learned = "bpe:";

std::size_t size_of(const std::string& option) {
  std::size_t size = 0;
  const char *begin = option.data() + learned.size(), *end = option.data() + option.size();
  if (std::from_chars(begin, end, size).ptr != end || begin == end)
    throw UserError(fmt::format("tokenizer {} is not of the form bpe:SIZE", option), "tokenizer_size",
                    "give a size, such as bpe:4096");
  return size;
}

/// Returns a BPE tokenizer of single characters without merges. Id 0 is for unknown characters; its text is U+FFFD as
/// in Vocabulary, unless the text contains that character too.
std::string character_json(const text::Vocabulary& vocabulary) {
  using nlohmann::json;
  const std::u32string characters = text::decode_utf8(vocabulary.characters());
  const char32_t replacement = 0xFFFD;
  const bool is_taken = characters.find(replacement) != std::u32string::npos;
  const std::string unknown = is_taken ? "<unk>" : text::encode_utf8({&replacement, 1});
  json vocab = {{unknown, 0}};
  for (std::size_t i = 0; i < characters.size(); ++i) vocab[text::encode_utf8({&characters[i], 1})] = i + 1;
  const json made = {{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", json::array()},
                     {"normalizer", nullptr},
                     {"pre_tokenizer", nullptr},
                     {"post_processor", nullptr},
                     {"decoder", {{"type", "Fuse"}}},
                     {"model",
                      {{"type", "BPE"},
                       {"dropout", nullptr},
                       {"unk_token", unknown},
                       {"continuing_subword_prefix", nullptr},
                       {"end_of_word_suffix", nullptr},
                       {"fuse_unk", false},
                       {"byte_fallback", false},
                       {"ignore_merges", false},
                       {"vocab", vocab},
                       {"merges", json::array()}}}};
  return made.dump();
}

}  // namespace

TextCodec::TextCodec(text::Vocabulary characters) : characters_(std::move(characters)) {}
TextCodec::TextCodec(Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}

TextCodec TextCodec::make(const std::string& option, std::string_view text) {
  if (option.empty()) return TextCodec(text::Vocabulary::of(text));
  if (!option.starts_with(learned)) return TextCodec(Tokenizer::load(option));
  return TextCodec(learn_byte_level_bpe(replace_invalid_utf8(text), {.vocabulary_size = size_of(option)}));
}

TextCodec TextCodec::resumed(const Settings& kept, const std::filesystem::path& checkpoint,
                             const std::filesystem::path& run) {
  if (const auto characters = kept.find("characters"); characters != kept.end())
    return TextCodec(text::Vocabulary::from_characters(characters->second));
  const auto hash = kept.find("tokenizer_sha256");
  if (hash == kept.end())
    throw UserError(fmt::format("the checkpoint {} has no vocabulary: its state.json lacks config.characters",
                                checkpoint.string()),
                    "train_resume", "give another output folder, or start from scratch");
  Tokenizer tokenizer = Tokenizer::load(run / "tokenizer.json");
  if (sha256_hex(tokenizer.json()) != hash->second)
    throw UserError(fmt::format("{} is not the tokenizer of the checkpoint", (run / "tokenizer.json").string()),
                    "train_resume", "restore the file, or start from scratch");
  return TextCodec(std::move(tokenizer));
}

std::string TextCodec::to_text() const {
  return characters_ ? "c" + characters_->characters() : "t" + tokenizer_->json();
}

TextCodec TextCodec::of_text(const std::string& text) {
  if (text.starts_with('c')) return TextCodec(text::Vocabulary::from_characters(text.substr(1)));
  return TextCodec(Tokenizer::parse(text.substr(1), "tokenizer.json of the first process"));
}

std::int64_t TextCodec::size() const { return characters_ ? characters_->size() : tokenizer_->end_id(); }

std::string_view TextCodec::unit() const { return characters_ ? "characters" : "tokens"; }

std::vector<std::int64_t> TextCodec::encode(std::string_view text) const {
  if (characters_) return characters_->encode(text);
  const Encoding encoding =
      tokenizer_->encode(replace_invalid_utf8(text), {.special_tokens = false, .offsets = false});
  return {encoding.ids.begin(), encoding.ids.end()};
}

std::function<std::string(std::int64_t)> TextCodec::stream() const {
  if (characters_) return [vocabulary = *characters_](std::int64_t id) { return vocabulary.decode({id}); };
  return [stream = std::make_shared<Tokenizer::Stream>(tokenizer_->stream())](std::int64_t id) {
    return stream->push(static_cast<TokenId>(id));
  };
}

Settings TextCodec::kept() const {
  if (characters_) return {{"characters", characters_->characters()}};
  return {{"tokenizer_sha256", sha256_hex(tokenizer_->json())}};
}

std::string TextCodec::tokenizer_json() const {
  return characters_ ? character_json(*characters_) : tokenizer_->json();
}

}  // namespace lathe
