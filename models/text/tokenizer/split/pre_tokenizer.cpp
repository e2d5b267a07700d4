#include "models/text/tokenizer/split/pre_tokenizer.h"

#include <algorithm>
#include <array>

#include "models/text/tokenizer/split/byte_alphabet.h"
#include "models/text/tokenizer/split/metaspace.h"
#include "models/text/tokenizer/split/pattern.h"
#include "models/text/tokenizer/unicode/characters.h"
#include "models/text/tokenizer/unicode/utf8.h"

namespace lathe::text {

namespace {

constexpr std::array<std::string_view, 5> behaviors{"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext",
                                                    "Contiguous"};

SplitBehavior read_behavior(const JsonNode& place) { return static_cast<SplitBehavior>(place.choice(behaviors)); }

/// Returns a function that finds each character for which `holds` returns true.
template <class Holds>
auto each_character(Holds holds) {
  return [holds](std::string_view text, const auto& found) {
    for (std::size_t at = 0; at < text.size();) {
      const Character next = character_at(text, at);
      if (holds(next.code)) found(at, at + next.size);
      at += next.size;
    }
  };
}

/// Splits at each single character for which `holds` returns true.
template <class Holds>
class CharacterSplit : public PreTokenizer {
 public:
  CharacterSplit(SplitBehavior behavior, Holds holds) : behavior_(behavior), holds_(holds) {}
  void apply(Words& words, MatchMemory&) const override {
    split_words(words, behavior_, false, each_character(holds_));
  }

 private:
  SplitBehavior behavior_;
  Holds holds_;
};

template <class Holds>
std::unique_ptr<const PreTokenizer> character_split(SplitBehavior behavior, Holds holds) {
  return std::make_unique<CharacterSplit<Holds>>(behavior, holds);
}

class Split : public PreTokenizer {
 public:
  explicit Split(const Fields& fields)
      : pattern_(fields.get("pattern")),
        behavior_(read_behavior(fields.get("behavior"))),
        inverts_(fields.get("invert").boolean()) {}

  void apply(Words& words, MatchMemory& memory) const override {
    split_words(words, behavior_, inverts_,
                [&](std::string_view text, const auto& found) { pattern_.for_each(text, memory, found); });
  }

 private:
  Pattern pattern_;
  SplitBehavior behavior_;
  bool inverts_;
};

/// Splits into runs of \w and runs of characters that are neither \w nor white space.
class Whitespace : public PreTokenizer {
 public:
  void apply(Words& words, MatchMemory&) const override {
    split_words(words, SplitBehavior::removed, true, [](std::string_view text, const auto& found) {
      enum class Kind { space, word, other };
      std::size_t begin = 0;
      Kind kind = Kind::space;
      for (std::size_t at = 0; at < text.size();) {
        const Character next = character_at(text, at);
        const Kind now = is_word(next.code) ? Kind::word : is_space(next.code) ? Kind::space : Kind::other;
        if (now != kind) {
          if (kind != Kind::space) found(begin, at);
          begin = at;
          kind = now;
        }
        at += next.size;
      }
      if (kind != Kind::space) found(begin, text.size());
    });
  }
};

/// Removes white space and isolates each punctuation mark.
class BertSplit : public PreTokenizer {
 public:
  void apply(Words& words, MatchMemory&) const override {
    split_words(words, SplitBehavior::removed, true, [](std::string_view text, const auto& found) {
      std::size_t begin = 0;
      for (std::size_t at = 0; at < text.size();) {
        const Character next = character_at(text, at);
        const bool stands_alone = is_punctuation(next.code);
        const std::size_t end = at + next.size;
        if (stands_alone || is_space(next.code)) {
          if (begin < at) found(begin, at);
          if (stands_alone) found(at, end);
          begin = end;
        }
        at = end;
      }
      if (begin < text.size()) found(begin, text.size());
    });
  }
};

class FixedLength : public PreTokenizer {
 public:
  explicit FixedLength(std::int64_t length) : length_(length) {}
  void apply(Words& words, MatchMemory&) const override {
    split_words(words, SplitBehavior::isolated, false, [&](std::string_view text, const auto& found) {
      for (std::size_t begin = 0, at = 0; begin < text.size(); begin = at) {
        for (std::int64_t i = 0; i < length_ && at < text.size(); ++i) at += character_size(text[at]);
        found(begin, at);
      }
    });
  }

 private:
  std::int64_t length_;
};

class ByteLevelSplit : public PreTokenizer {
 public:
  ByteLevelSplit(const Fields& fields, bool writes_alphabet)
      : adds_space_(fields.get("add_prefix_space").boolean()), writes_alphabet_(writes_alphabet) {
    fields.get("trim_offsets").boolean();
    if (fields.boolean_or("use_regex", true))
      regex_.emplace(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)");
  }

  void apply(Words& words, MatchMemory& memory) const override {
    const auto lacks_space = [&](const Word& word) { return word.added < 0 && words.text.text()[word.begin] != ' '; };
    if (adds_space_ && std::any_of(words.words.begin(), words.words.end(), lacks_space))
      rewrite_words(words, [&](AlignedWriter& out, const Word& word) {
        if (lacks_space(word)) out.put(" ", words.text.span(word.begin));
        out.copy(words.text, word.begin, word.end);
      });
    if (regex_)
      split_words(words, SplitBehavior::isolated, false,
                  [&](std::string_view text, const auto& found) { for_each_match(*regex_, text, memory, found); });
    if (writes_alphabet_) {
      rewrite_words(words, [&](AlignedWriter& out, const Word& word) {
        for (std::size_t at = word.begin; at < word.end; ++at)
          out.put(byte_character(static_cast<std::uint8_t>(words.text.text()[at])), words.text.span(at));
      });
    } else {
      words.is_byte_level = true;
    }
  }

 private:
  bool adds_space_, writes_alphabet_;
  std::optional<Regex> regex_;
};

/// Replaces spaces by a visible character, at which words start; it may also be prepended.
class MetaspaceSplit : public PreTokenizer {
 public:
  explicit MetaspaceSplit(const JsonNode& place) : metaspace_(place) {}

  void apply(Words& words, MatchMemory&) const override {
    const std::string mark = utf8(metaspace_.replacement);
    rewrite_words(words, [&](AlignedWriter& out, const Word& word) {
      const std::string_view text = words.text_of(word);
      const Span first = words.text.span(word.begin);
      const bool wants_mark = metaspace_.scheme == Metaspace::Scheme::always ||
                              (metaspace_.scheme == Metaspace::Scheme::first && first.begin == 0);
      if (wants_mark && text[0] != ' ' && !text.starts_with(mark)) out.put(mark, first);
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t space = std::min(text.find(' ', at), text.size());
        out.copy(words.text, word.begin + at, word.begin + space);
        if (space < text.size()) out.put(mark, words.text.span(word.begin + space));
        at = space + 1;
      }
    });
    if (metaspace_.splits)
      split_words(words, SplitBehavior::merged_with_next, false,
                  each_character([&](char32_t code) { return code == metaspace_.replacement; }));
  }

 private:
  Metaspace metaspace_;
};

class SequenceSplit : public PreTokenizer {
 public:
  SequenceSplit(const Fields& fields, bool model_takes_bytes) {
    const std::vector<JsonNode> places = fields.get("pretokenizers").items();
    for (std::size_t i = 0; i < places.size(); ++i)
      parts_.push_back(
          {read_pre_tokenizer(places[i], model_takes_bytes && i + 1 == places.size()), places[i].path()});
  }
  void apply(Words& words, MatchMemory& memory) const override {
    for (const Part& part : parts_) {
      part.step->apply(words, memory);
      memory.budget().write(words.text.text().size(), part.place);
    }
  }

 private:
  struct Part {
    std::unique_ptr<const PreTokenizer> step;
    std::string place;
  };
  std::vector<Part> parts_;
};

constexpr std::string_view pre_tokenizer_kinds[] = {
    "BertPreTokenizer", "ByteLevel", "CharDelimiterSplit", "Digits",     "FixedLength",    "Metaspace", "Punctuation",
    "Sequence",         "Split",     "UnicodeScripts",     "Whitespace", "WhitespaceSplit"};

}  // namespace

std::unique_ptr<const PreTokenizer> read_pre_tokenizer(const JsonNode& place, bool model_takes_bytes) {
  const auto fields = [&](std::initializer_list<std::string_view> known) { return Fields(place, known); };
  const std::string_view kind = pre_tokenizer_kinds[read_kind(place, pre_tokenizer_kinds)];
  if (kind == "ByteLevel")
    return std::make_unique<ByteLevelSplit>(fields({"add_prefix_space", "trim_offsets", "use_regex"}),
                                            !model_takes_bytes);
  if (kind == "CharDelimiterSplit") {
    const char32_t delimiter = fields({"delimiter"}).get("delimiter").character();
    return character_split(SplitBehavior::removed, [delimiter](char32_t code) { return code == delimiter; });
  }
  if (kind == "Digits") {
    const bool each = fields({"individual_digits"}).get("individual_digits").boolean();
    return character_split(each ? SplitBehavior::isolated : SplitBehavior::contiguous, is_numeric);
  }
  if (kind == "FixedLength") {
    const auto length = fields({"length"}).find("length");
    if (length && length->count() == 0) length->fail("is 0");
    return std::make_unique<FixedLength>(length ? length->count() : 5);
  }
  if (kind == "Metaspace") return std::make_unique<MetaspaceSplit>(place);
  if (kind == "Punctuation") {
    const auto behavior = fields({"behavior"}).find("behavior");
    return character_split(behavior ? read_behavior(*behavior) : SplitBehavior::isolated, is_punctuation);
  }
  if (kind == "Sequence") return std::make_unique<SequenceSplit>(fields({"pretokenizers"}), model_takes_bytes);
  if (kind == "Split") return std::make_unique<Split>(fields({"pattern", "behavior", "invert"}));
  fields({});
  if (kind == "BertPreTokenizer") return std::make_unique<BertSplit>();
  if (kind == "UnicodeScripts") return make_script_splitter();
  if (kind == "Whitespace") return std::make_unique<Whitespace>();
  return character_split(SplitBehavior::removed, is_space);
}

}  // namespace lathe::text
