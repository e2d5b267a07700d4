#include "models/text/tokenizer/decode/decoder.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "models/text/tokenizer/decode/decode_stages.h"
#include "models/text/tokenizer/split/byte_alphabet.h"
#include "models/text/tokenizer/split/metaspace.h"
#include "models/text/tokenizer/split/pattern.h"
#include "models/text/tokenizer/unicode/utf8.h"

namespace lathe::text {

namespace {

struct NoSettings {};

/// Decodes tokens in GPT-2's alphabet to bytes and joins them to one token.
class ByteLevelStage : public TokenStage {
 public:
  ByteLevelStage(std::unique_ptr<DecodeStage> next, NoSettings) : TokenStage(std::move(next)) {}

 private:
  void take(std::string token) override {
    std::string decided;
    repair_.push(to_bytes(token).value_or(token), decided);
    next().push(decided);
  }
  void end() override {
    std::string rest;
    repair_.finish(rest);
    put(rest);
  }
  Utf8Repair repair_;
};

/// Decodes tokens <0x00> to <0xFF> to bytes. A run of them becomes one token if it is UTF-8, otherwise one U+FFFD per
/// byte.
class ByteFallbackStage : public TokenStage {
 public:
  ByteFallbackStage(std::unique_ptr<DecodeStage> next, NoSettings) : TokenStage(std::move(next)) {}

 private:
  static std::optional<char> byte_of(std::string_view token) {
    const auto digit = [](char c) {
      return c >= '0' && c <= '9'   ? c - '0'
             : c >= 'a' && c <= 'f' ? c - 'a' + 10
             : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                    : -1;
    };
    if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
    // tokenizers parses "+A" as a number.
    const int high = token[3] == '+' ? 0 : digit(token[3]), low = digit(token[4]);
    if (high < 0 || low < 0) return std::nullopt;
    return static_cast<char>(high * 16 + low);
  }
  void take(std::string token) override {
    if (const auto byte = byte_of(token)) {
      bytes_.push_back(*byte);
      return;
    }
    end();
    put(token);
  }
  void end() override {
    if (bytes_.empty()) return;
    if (find_invalid_utf8(bytes_) == std::string_view::npos) {
      put(bytes_);
    } else {
      for (std::size_t i = 0; i < bytes_.size(); ++i) put("\uFFFD");
    }
    bytes_.clear();
  }
  std::string bytes_;
};

class MetaspaceStage : public TokenStage {
 public:
  MetaspaceStage(std::unique_ptr<DecodeStage> next, const Metaspace& settings)
      : TokenStage(std::move(next)),
        mark_(utf8(settings.replacement)),
        drops_first_(settings.scheme != Metaspace::Scheme::never) {}

 private:
  void take(std::string token) override { put(replace_all(token, mark_, is_first() && drops_first_ ? "" : " ")); }
  std::string mark_;
  bool drops_first_;
};

/// Removes spaces before punctuation and in English contractions.
std::string clean_up(std::string text) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> rules{{{" .", "."},
                                                                                        {" ?", "?"},
                                                                                        {" !", "!"},
                                                                                        {" ,", ","},
                                                                                        {" ' ", "'"},
                                                                                        {" n't", "n't"},
                                                                                        {" 'm", "'m"},
                                                                                        {" do not", " don't"},
                                                                                        {" 's", "'s"},
                                                                                        {" 've", "'ve"},
                                                                                        {" 're", "'re"}}};
  for (const auto& [from, to] : rules) text = replace_all(text, from, to);
  return text;
}

struct WordPieceSettings {
  std::string prefix;
  bool cleans_up = true;
};

class WordPieceStage : public TokenStage {
 public:
  WordPieceStage(std::unique_ptr<DecodeStage> next, WordPieceSettings settings)
      : TokenStage(std::move(next)), settings_(std::move(settings)) {}

 private:
  void take(std::string token) override {
    if (!is_first())
      token = token.starts_with(settings_.prefix) ? token.substr(settings_.prefix.size()) : " " + token;
    put(settings_.cleans_up ? clean_up(std::move(token)) : token);
  }
  WordPieceSettings settings_;
};

/// Replaces the suffix of a word's last token by a space, except at the end of the text.
class SuffixStage : public TokenStage {
 public:
  SuffixStage(std::unique_ptr<DecodeStage> next, std::string suffix)
      : TokenStage(std::move(next)), suffix_(std::move(suffix)) {}

 private:
  void take(std::string token) override {
    if (last_) put(replace_all(*last_, suffix_, " "));
    last_ = std::move(token);
  }
  void end() override {
    if (last_) put(replace_all(*last_, suffix_, ""));
  }
  std::string suffix_;
  std::optional<std::string> last_;
};

struct CtcSettings {
  std::string padding, delimiter;
  bool cleans_up = true;
};

/// Collapses repeated tokens and removes padding.
class CtcStage : public TokenStage {
 public:
  CtcStage(std::unique_ptr<DecodeStage> next, CtcSettings settings)
      : TokenStage(std::move(next)), settings_(std::move(settings)) {}

 private:
  void take(std::string token) override {
    if (last_ == token) return;
    last_ = token;
    token = replace_all(token, settings_.padding, "");
    if (settings_.cleans_up) token = replace_all(clean_up(std::move(token)), settings_.delimiter, " ");
    if (!token.empty()) put(token);
  }
  CtcSettings settings_;
  std::optional<std::string> last_;
};

class ReplaceStage : public TokenStage {
 public:
  struct Settings {
    std::shared_ptr<const Pattern> pattern;
    std::string content;
  };
  ReplaceStage(std::unique_ptr<DecodeStage> next, Settings settings)
      : TokenStage(std::move(next)), settings_(std::move(settings)) {}

 private:
  void take(std::string token) override {
    std::string result;
    std::size_t done = 0;
    memory_.begin(token.size());
    if (!token.empty())
      settings_.pattern->for_each(token, memory_, [&](std::size_t begin, std::size_t end) {
        result.append(token, done, begin - done).append(settings_.content);
        done = end;
      });
    put(result.append(token, done));
  }
  Settings settings_;
  MatchMemory memory_;
};

/// Joins all tokens to one.
class FuseStage : public DecodeStage {
 public:
  FuseStage(std::unique_ptr<DecodeStage> next, NoSettings) : next_(std::move(next)) {}
  void push(std::string_view fragment) override { next_->push(fragment); }
  void end_token() override {}
  void finish() override {
    next_->end_token();
    next_->finish();
  }

 private:
  std::unique_ptr<DecodeStage> next_;
};

/// Strips up to a given number of one character from both ends of a token. Text is passed on as it arrives.
class StripStage : public DecodeStage {
 public:
  struct Settings {
    std::string character;
    std::int64_t start = 0, stop = 0;
  };
  StripStage(std::unique_ptr<DecodeStage> next, Settings settings)
      : next_(std::move(next)), settings_(std::move(settings)), to_drop_(settings_.start) {}

  void push(std::string_view fragment) override {
    std::string out;
    for (std::size_t at = 0; at < fragment.size();) {
      const std::string_view next = fragment.substr(at, character_size(fragment[at]));
      at += next.size();
      if (next != settings_.character) {
        to_drop_ = 0;
        release(held_, out);
        out.append(next);
      } else if (to_drop_ > 0) {
        --to_drop_;
      } else if (held_ == settings_.stop) {
        out.append(next);
      } else {
        ++held_;
      }
    }
    next_->push(out);
  }
  void end_token() override {
    held_ = 0;
    to_drop_ = settings_.start;
    next_->end_token();
  }
  void finish() override { next_->finish(); }

 private:
  void release(std::int64_t& count, std::string& out) const {
    for (; count > 0; --count) out.append(settings_.character);
  }

  std::unique_ptr<DecodeStage> next_;
  Settings settings_;
  std::int64_t to_drop_;   ///< characters still to drop at the token's start
  std::int64_t held_ = 0;  ///< characters that are dropped if the token ends after them
};

class SpacedStage : public TokenStage {
 public:
  SpacedStage(std::unique_ptr<DecodeStage> next, NoSettings) : TokenStage(std::move(next)) {}

 private:
  void take(std::string token) override { put(is_first() ? token : " " + token); }
};

class SequenceDecoder : public Decoder {
 public:
  explicit SequenceDecoder(const Fields& fields) {
    constexpr double most_growth = 64;
    constexpr int most_stages = 256;
    for (const JsonNode& place : fields.get("decoders").items()) {
      parts_.push_back(read_decoder(place));
      const DecoderCost part = parts_.back()->cost();
      cost_ = {cost_.growth * part.growth, cost_.stages + part.stages};
      if (cost_.growth > most_growth)
        place.fail(fmt::format("the decoders up to this one may make a text more than {} times as long", most_growth),
                   "tokenizer_limit");
      if (cost_.stages > most_stages)
        place.fail(fmt::format("there are more than {} decoders", most_stages), "tokenizer_limit");
    }
  }
  DecoderCost cost() const override { return cost_; }
  std::unique_ptr<DecodeStage> start(std::unique_ptr<DecodeStage> next) const override {
    for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) next = (*part)->start(std::move(next));
    return next;
  }

 private:
  std::vector<std::unique_ptr<const Decoder>> parts_;
  DecoderCost cost_{.growth = 1, .stages = 0};
};

template <class Stage, class Settings>
std::unique_ptr<const Decoder> make(Settings settings, double growth = 1) {
  return std::make_unique<StageDecoder<Stage, Settings>>(std::move(settings), growth);
}

/// Returns the maximum growth factor of a text in which each `from` is replaced. A regular expression may match the
/// empty text before each byte.
double replacement_growth(const std::string* from, const std::string& to) {
  const auto size = static_cast<double>(to.size());
  if (!from || from->empty()) return 1 + size;
  return std::max(1.0, size / static_cast<double>(from->size()));
}

constexpr std::string_view kinds[] = {"BPEDecoder", "ByteFallback", "ByteLevel", "CTC",   "Fuse",
                                      "Metaspace",  "Replace",      "Sequence",  "Strip", "WordPiece"};

}  // namespace

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  std::size_t done = 0;
  if (from.empty()) {
    for (; done < text.size(); done += character_size(text[done]))
      result.append(to).append(text.substr(done, character_size(text[done])));
    return result.append(to);
  }
  for (std::size_t at = text.find(from); at != std::string_view::npos; at = text.find(from, done)) {
    result.append(text.substr(done, at - done)).append(to);
    done = at + from.size();
  }
  return result.append(text.substr(done));
}

std::unique_ptr<const Decoder> read_decoder(const JsonNode& place) {
  const auto fields = [&](std::initializer_list<std::string_view> known) { return Fields(place, known); };
  const std::string_view kind = kinds[read_kind(place, kinds)];
  if (kind == "BPEDecoder") {
    const std::string suffix = fields({"suffix"}).get("suffix").string();
    return make<SuffixStage>(suffix, replacement_growth(&suffix, " "));
  }
  if (kind == "CTC") {
    const Fields own = fields({"pad_token", "word_delimiter_token", "cleanup"});
    const CtcSettings settings{own.get("pad_token").string(), own.get("word_delimiter_token").string(),
                               own.get("cleanup").boolean()};
    return make<CtcStage>(settings, replacement_growth(&settings.delimiter, " "));
  }
  if (kind == "Metaspace") return make<MetaspaceStage>(Metaspace(place));
  if (kind == "Replace") {
    const Fields own = fields({"pattern", "content"});
    const ReplaceStage::Settings settings{std::make_shared<const Pattern>(own.get("pattern")),
                                          own.get("content").string()};
    return make<ReplaceStage>(settings, replacement_growth(settings.pattern->literal(), settings.content));
  }
  if (kind == "Sequence") return std::make_unique<SequenceDecoder>(fields({"decoders"}));
  if (kind == "Strip") {
    const Fields own = fields({"content", "start", "stop"});
    return make<StripStage>(StripStage::Settings{utf8(own.get("content").character()), own.get("start").count(),
                                                 own.get("stop").count()});
  }
  if (kind == "WordPiece") {
    const Fields own = fields({"prefix", "cleanup"});
    return make<WordPieceStage>(WordPieceSettings{own.get("prefix").string(), own.get("cleanup").boolean()});
  }
  if (kind == "ByteLevel") {
    fields({"add_prefix_space", "trim_offsets", "use_regex"});
    return make<ByteLevelStage>(NoSettings{});
  }
  fields({});
  return kind == "Fuse" ? make<FuseStage>(NoSettings{}) : make<ByteFallbackStage>(NoSettings{});
}

std::unique_ptr<const Decoder> make_spaced_decoder() { return make<SpacedStage>(NoSettings{}); }

}  // namespace lathe::text
