#include "models/text/tokenizer/pipeline/tokenizer_pipeline.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "ir/support/error.h"
#include "models/text/tokenizer/pipeline/tokenizer_limits.h"
#include "models/text/tokenizer/split/byte_alphabet.h"
#include "models/text/tokenizer/unicode/characters.h"
#include "models/text/tokenizer/unicode/utf8.h"

namespace lathe::text {

namespace {

constexpr std::string_view text_label = "tokenizer_text";

/// Converts byte offsets to code points. Fast for ascending offsets.
class CharacterCounter {
 public:
  explicit CharacterCounter(std::string_view text) : text_(text) {
    is_ascii_ = std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  }
  std::uint32_t at(std::uint32_t byte) {
    if (is_ascii_) return byte;
    for (; byte_ < byte; ++byte_) count_ += starts_character(text_[byte_]) ? 1 : 0;
    for (; byte_ > byte; --byte_) count_ -= starts_character(text_[byte_ - 1]) ? 1 : 0;
    return count_;
  }

 private:
  std::string_view text_;
  bool is_ascii_ = false;
  std::uint32_t byte_ = 0, count_ = 0;
};

/// Returns the number of spaces, or GPT-2's character for a space, at both ends of a token.
Edges edges_of(std::string_view text) {
  const auto is_gap = [](char32_t code) { return is_space(code) || code == byte_character(' '); };
  Edges edges;
  for (std::size_t at = 0; at < text.size() && is_gap(character_at(text, at).code); at += character_size(text[at]))
    ++edges.leading;
  for (std::size_t end = text.size(); end > 0 && is_gap(character_before(text, end).code);
       end -= character_before(text, end).size)
    ++edges.trailing;
  return edges;
}

/// Writes the tokens of one text into a draft.
class DraftWriter {
 public:
  DraftWriter(const Words& words, std::string_view original, std::int32_t type, bool has_offsets)
      : words_(words), type_(type), has_offsets_(has_offsets), counter_(has_offsets ? original : "") {
    Encoding& encoding = draft_.encoding;
    encoding.ids.reserve(words.words.size() * 5 / 4);
    if (!has_offsets) return;
    encoding.offsets.reserve(words.words.size() * 5 / 4);
    encoding.words.reserve(words.words.size() * 5 / 4);
  }

  /// Adds a token for bytes [begin, end) of the words' text, in word `index`.
  void put(TokenId id, std::uint32_t begin, std::uint32_t end, std::size_t index) {
    draft_.encoding.ids.push_back(id);
    if (!has_offsets_) return;
    const auto size = static_cast<std::uint32_t>(words_.text.text().size());
    const Span span = words_.text.cover(std::min(begin, size - 1), std::min(end, size));
    const std::uint32_t first = counter_.at(span.begin);
    draft_.encoding.offsets.push_back({first, counter_.at(span.end)});
    draft_.encoding.words.push_back(static_cast<std::int32_t>(index));
  }
  void put_edges(Edges edges) { draft_.edges.push_back(edges); }

  Draft finish() {
    const std::size_t size = draft_.encoding.ids.size();
    draft_.encoding.type_ids.assign(size, type_);
    draft_.encoding.special_mask.assign(size, 0);
    draft_.encoding.attention_mask.assign(size, 1);
    return std::move(draft_);
  }

 private:
  const Words& words_;
  std::int32_t type_;
  bool has_offsets_;
  CharacterCounter counter_;
  Draft draft_;
};

void check(std::string_view text) {
  if (text.size() > std::numeric_limits<std::uint32_t>::max() / 2)
    throw UserError(fmt::format("a text of {} bytes is too long; encode it in parts", text.size()), text_label);
  const std::size_t fault = find_invalid_utf8(text);
  if (fault != std::string_view::npos)
    throw UserError(
        fmt::format("the text is not UTF-8: byte {} is 0x{:02X}", fault, static_cast<unsigned char>(text[fault])),
        text_label, "replace_invalid_utf8() puts U+FFFD for what is not");
}

}  // namespace

class Pipeline::ScratchLoan {
 public:
  explicit ScratchLoan(const Pipeline& owner) : owner_(owner) {
    const std::scoped_lock lock(owner.mutex_);
    if (owner.idle_.empty()) {
      scratch_ = std::make_unique<Scratch>();
    } else {
      scratch_ = std::move(owner.idle_.back());
      owner.idle_.pop_back();
    }
  }
  ~ScratchLoan() {
    const std::scoped_lock lock(owner_.mutex_);
    owner_.idle_.push_back(std::move(scratch_));
  }
  ScratchLoan(const ScratchLoan&) = delete;
  ScratchLoan& operator=(const ScratchLoan&) = delete;
  Scratch& operator*() const { return *scratch_; }

 private:
  const Pipeline& owner_;
  std::unique_ptr<Scratch> scratch_;
};

Pipeline::Pipeline(const JsonNode& place) {
  const Fields fields(place, {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                              "post_processor", "decoder", "model"});
  if (const auto version = fields.find("version"); version && version->string() != "1.0")
    version->fail(fmt::format("is {}, not 1.0", version->string()));
  if (const auto truncation = fields.find("truncation")) truncation_ = read_truncation(*truncation);
  if (const auto padding = fields.find("padding")) padding_ = read_padding(*padding);
  model_ = read_model(fields.get("model"));
  if (const auto normalizer = fields.find("normalizer")) normalizer_ = read_normalizer(*normalizer);
  if (const auto pre_tokenizer = fields.find("pre_tokenizer"))
    pre_tokenizer_ = read_pre_tokenizer(*pre_tokenizer, model_->takes_bytes());
  if (const auto added = fields.find("added_tokens"))
    added_ = AddedTokens(*added, model_->tokens(), normalizer_.get());
  if (const auto post_processor = fields.find("post_processor"))
    post_processor_ = read_post_processor(*post_processor);
  const auto decoder = fields.find("decoder");
  decoder_ = decoder ? read_decoder(*decoder) : make_spaced_decoder();
  if (!post_processor_ || !post_processor_->trims()) return;
  const TokenTable& tokens = model_->tokens();
  for (TokenId id = 0; id < tokens.end(); ++id)
    edges_.push_back(edges_of(tokens.has(id) ? tokens.text(id) : std::string_view()));
}

/// Normalizes each part between added tokens separately.
Words Pipeline::normalized(std::string_view text, Scratch& scratch) const {
  const std::vector<Word> parts = added_.split_original(text);
  std::vector<AlignedText> texts;
  bool is_original = true;
  for (const Word& part : parts) {
    AlignedText source(text.substr(part.begin, part.end - part.begin), part.begin);
    texts.push_back(part.added < 0 && normalizer_ ? normalizer_->apply(std::move(source), scratch.matches)
                                                  : std::move(source));
    is_original = is_original && texts.back().is_original();
  }
  Words words;
  AlignedWriter joined(0, 0);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto begin = is_original         ? parts[i].begin
                       : parts.size() == 1 ? 0
                                           : static_cast<std::uint32_t>(joined.size());
    if (!is_original && parts.size() > 1) joined.copy(texts[i], 0, texts[i].text().size());
    if (parts[i].added >= 0) {
      words.words.push_back({begin, begin + static_cast<std::uint32_t>(texts[i].text().size()), parts[i].added});
      continue;
    }
    for (const Word& word : added_.split_normalized(texts[i].text()))
      words.words.push_back({begin + word.begin, begin + word.end, word.added});
  }
  words.text = is_original ? AlignedText(text) : parts.size() == 1 ? std::move(texts[0]) : joined.finish();
  return words;
}

Words Pipeline::split(std::string_view text, Scratch& scratch) const {
  scratch.matches.begin(text.size());
  Words words = normalized(text, scratch);
  if (pre_tokenizer_) pre_tokenizer_->apply(words, scratch.matches);
  return words;
}

Draft Pipeline::draft(std::string_view text, std::int32_t type, bool has_offsets, Scratch& scratch) const {
  check(text);
  const Words words = split(text, scratch);
  DraftWriter out(words, text, type, has_offsets);
  const bool has_edges = has_offsets && !edges_.empty();
  std::vector<ModelToken> tokens;
  for (std::size_t i = 0; i < words.words.size(); ++i) {
    const Word& word = words.words[i];
    if (word.added >= 0) {
      out.put(word.added, word.begin, word.end, i);
      if (has_edges) out.put_edges(edges_of(words.text_of(word)));
      continue;
    }
    tokens.clear();
    model_->tokenize(words.text_of(word), words.is_byte_level, scratch.cache, tokens);
    for (const ModelToken& token : tokens) {
      out.put(token.id, word.begin + token.begin, word.begin + token.end, i);
      if (!has_edges) continue;
      out.put_edges(token.id == model_->transparent_token()
                        ? edges_of(words.text_of(word).substr(token.begin, token.end - token.begin))
                        : edges_[token.id]);
    }
  }
  return out.finish();
}

Encoding Pipeline::encode(std::span<const std::string_view> texts, const EncodeOptions& options) const {
  const ScratchLoan scratch(*this);
  std::vector<Draft> drafts;
  for (const std::string_view text : texts)
    drafts.push_back(draft(text, static_cast<std::int32_t>(drafts.size()), options.offsets, *scratch));
  const bool is_pair = drafts.size() == 2;
  if (options.truncation)
    truncate(drafts, *options.truncation,
             post_processor_ && options.special_tokens ? post_processor_->added(is_pair) : 0);
  if (post_processor_) post_processor_->apply(drafts, options.special_tokens);
  if (drafts.empty()) return {};
  Draft all = std::move(drafts.front());
  for (std::size_t i = 1; i < drafts.size(); ++i) append(all, drafts[i]);
  return finish(std::move(all));
}

std::vector<std::string> Pipeline::words_of(std::string_view text) const {
  check(text);
  const ScratchLoan scratch(*this);
  const Words words = split(text, *scratch);
  std::vector<std::string> all;
  for (const Word& word : words.words) all.emplace_back(words.text_of(word));
  return all;
}

}  // namespace lathe::text
