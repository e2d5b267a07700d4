#include "models/text/tokenizer/normalize/normalizer.h"

#include <optional>
#include <vector>

#include "models/text/tokenizer/normalize/charsmap.h"
#include "models/text/tokenizer/split/byte_alphabet.h"
#include "models/text/tokenizer/split/pattern.h"
#include "models/text/tokenizer/unicode/characters.h"
#include "models/text/tokenizer/unicode/normal_form.h"
#include "models/text/tokenizer/unicode/utf8.h"

namespace lathe::text {

namespace {

/// Rewrites characters one at a time. If changes(code), calls write(code, put), which calls put(new code) for each
/// replacement character; no call removes the character. Returns text without such characters unchanged.
template <class Changes, class Write>
AlignedText rewrite_characters(AlignedText source, const Changes& changes, const Write& write) {
  const std::string_view text = source.text();
  std::optional<AlignedWriter> out;
  std::size_t copied = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Character next = character_at(text, at);
    if (changes(next.code)) {
      if (!out) out.emplace(source.origin(), text.size() + text.size() / 8);
      out->copy(source, copied, at);
      const Span span = source.span(at);
      write(next.code, [&](char32_t code) { out->put(code, span); });
      copied = at + next.size;
    }
    at += next.size;
  }
  if (!out) return source;
  out->copy(source, copied, text.size());
  return out->finish();
}

AlignedText lowercase(AlignedText source) {
  return rewrite_characters(
      std::move(source), [](char32_t code) { return to_lower(code) != code; },
      [](char32_t code, const auto& put) {
        put(to_lower(code));
        if (code == 0x130) put(0x307);
      });
}

class UnicodeForm : public Normalizer {
 public:
  explicit UnicodeForm(NormalForm form) : form_(form) {}
  AlignedText rewrite(AlignedText source, MatchMemory&) const override {
    return to_normal_form(std::move(source), form_);
  }

 private:
  NormalForm form_;
};

class Lowercase : public Normalizer {
 private:
  AlignedText rewrite(AlignedText source, MatchMemory&) const override { return lowercase(std::move(source)); }
};

/// Strips white space from the ends.
class Strip : public Normalizer {
 public:
  explicit Strip(const Fields& fields)
      : left_(fields.get("strip_left").boolean()), right_(fields.get("strip_right").boolean()) {}

  AlignedText rewrite(AlignedText source, MatchMemory&) const override {
    const std::string_view text = source.text();
    std::size_t begin = 0, end = text.size();
    while (left_ && begin < end && is_space(character_at(text, begin).code)) begin += character_size(text[begin]);
    while (right_ && end > begin && is_space(character_before(text, end).code))
      end -= character_before(text, end).size;
    if (begin == 0 && end == text.size()) return source;
    AlignedWriter out(source.origin(), end - begin);
    out.copy(source, begin, end);
    return out.finish();
  }

 private:
  bool left_, right_;
};

class StripAccents : public Normalizer {
 private:
  AlignedText rewrite(AlignedText source, MatchMemory&) const override {
    return rewrite_characters(std::move(source), is_mark, [](char32_t, const auto&) {});
  }
};

/// Applies SentencePiece's nmt clean-up rules.
class Nmt : public Normalizer {
 private:
  AlignedText rewrite(AlignedText source, MatchMemory&) const override {
    return rewrite_characters(
        std::move(source), [](char32_t code) { return is_removed(code) || is_gap(code); },
        [](char32_t code, const auto& put) {
          if (is_gap(code)) put(U' ');
        });
  }

 private:
  static bool is_gap(char32_t code) {
    return code == 0x9 || code == 0xA || code == 0xC || code == 0xD || code == 0x1680 ||
           (code >= 0x200B && code <= 0x200F) || code == 0x2028 || code == 0x2029 || code == 0x2581 ||
           code == 0xFEFF || code == 0xFFFD;
  }
  static bool is_removed(char32_t code) {
    return (code >= 0x1 && code <= 0x8) || code == 0xB || (code >= 0xE && code <= 0x1F) || code == 0x7F ||
           code == 0x8F || code == 0x9F;
  }
};

class Bert : public Normalizer {
 public:
  explicit Bert(const Fields& fields)
      : cleans_(fields.get("clean_text").boolean()),
        parts_han_(fields.get("handle_chinese_chars").boolean()),
        lowercases_(fields.get("lowercase").boolean()),
        strips_accents_(fields.boolean_or("strip_accents", lowercases_)) {}

  AlignedText rewrite(AlignedText source, MatchMemory&) const override {
    AlignedText text = std::move(source);
    if (cleans_) text = clean(std::move(text));
    if (parts_han_)
      text = rewrite_characters(std::move(text), is_bert_han, [](char32_t code, const auto& put) {
        put(U' ');
        put(code);
        put(U' ');
      });
    if (strips_accents_)
      text = rewrite_characters(to_normal_form(std::move(text), NormalForm::nfd), is_nonspacing_mark,
                                [](char32_t, const auto&) {});
    if (lowercases_) text = lowercase(std::move(text));
    return text;
  }

 private:
  static bool is_removed(char32_t code) {
    if (code >= 0x20 && code < 0x7F) return false;
    return code == 0 || code == 0xFFFD || (code != '\t' && code != '\n' && code != '\r' && is_control(code));
  }

  static AlignedText clean(AlignedText text) {
    return rewrite_characters(
        std::move(text), [](char32_t code) { return is_removed(code) || (code != U' ' && is_space(code)); },
        [](char32_t code, const auto& put) {
          if (!is_removed(code)) put(U' ');
        });
  }

  bool cleans_, parts_han_, lowercases_, strips_accents_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(const Fields& fields) : prefix_(fields.get("prepend").string()) {}

  AlignedText rewrite(AlignedText source, MatchMemory& memory) const override {
    if (source.text().empty()) return source;
    if (prefix_.size() > memory.budget().writable()) memory.budget().fail(place());
    AlignedWriter out(source.origin(), source.text().size() + prefix_.size());
    out.put(prefix_, source.span(0));
    out.copy(source, 0, source.text().size());
    return out.finish();
  }

 private:
  std::string prefix_;
};

/// Replaces each match by a text. The text has the span of the last character before the match's end.
class Replace : public Normalizer {
 public:
  explicit Replace(const Fields& fields)
      : pattern_(fields.get("pattern")), content_(fields.get("content").string()) {}

  AlignedText rewrite(AlignedText source, MatchMemory& memory) const override {
    const std::string_view text = source.text();
    if (text.empty()) return source;
    std::optional<AlignedWriter> out;
    std::size_t copied = 0;
    pattern_.for_each(text, memory, [&](std::size_t begin, std::size_t end) {
      if (!out) out.emplace(source.origin(), text.size() + text.size() / 4);
      if (out->size() + (begin - copied) + content_.size() > memory.budget().writable())
        memory.budget().fail(place());
      out->copy(source, copied, begin);
      out->put(content_, end > 0 ? source.span(end - 1) : Span{source.origin(), source.origin()});
      copied = end;
    });
    if (!out) return source;
    out->copy(source, copied, text.size());
    return out->finish();
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class Precompiled : public Normalizer {
 public:
  explicit Precompiled(const Fields& fields) : map_(fields.get("precompiled_charsmap")) {}
  AlignedText rewrite(AlignedText source, MatchMemory& memory) const override {
    return map_.apply(std::move(source), memory.budget(), place());
  }

 private:
  CharsMap map_;
};

/// Replaces each byte by its character in GPT-2's alphabet.
class ByteLevelNormalizer : public Normalizer {
 private:
  AlignedText rewrite(AlignedText source, MatchMemory&) const override {
    const std::string_view text = source.text();
    AlignedWriter out(source.origin(), text.size() + text.size() / 4);
    for (std::size_t at = 0; at < text.size(); ++at)
      out.put(byte_character(static_cast<std::uint8_t>(text[at])), source.span(at));
    return out.finish();
  }
};

class SequenceNormalizer : public Normalizer {
 public:
  explicit SequenceNormalizer(const Fields& fields) {
    for (const JsonNode& place : fields.get("normalizers").items()) parts_.push_back(read_normalizer(place));
  }
  AlignedText rewrite(AlignedText source, MatchMemory& memory) const override {
    AlignedText text = std::move(source);
    for (const auto& part : parts_) text = part->apply(std::move(text), memory);
    return text;
  }

 private:
  std::vector<std::unique_ptr<const Normalizer>> parts_;
};

constexpr std::string_view normalizer_kinds[] = {
    "BertNormalizer", "ByteLevel",   "Lowercase", "NFC",      "NFD",   "NFKC",        "NFKD", "Nmt",
    "Prepend",        "Precompiled", "Replace",   "Sequence", "Strip", "StripAccents"};

std::unique_ptr<Normalizer> make_normalizer(const JsonNode& place) {
  const auto fields = [&](std::initializer_list<std::string_view> known) { return Fields(place, known); };
  const std::string_view kind = normalizer_kinds[read_kind(place, normalizer_kinds)];
  if (kind == "BertNormalizer")
    return std::make_unique<Bert>(fields({"clean_text", "handle_chinese_chars", "strip_accents", "lowercase"}));
  if (kind == "Strip") return std::make_unique<Strip>(fields({"strip_left", "strip_right"}));
  if (kind == "Prepend") return std::make_unique<Prepend>(fields({"prepend"}));
  if (kind == "Precompiled") return std::make_unique<Precompiled>(fields({"precompiled_charsmap"}));
  if (kind == "Replace") return std::make_unique<Replace>(fields({"pattern", "content"}));
  if (kind == "Sequence") return std::make_unique<SequenceNormalizer>(fields({"normalizers"}));
  fields({});
  if (kind == "ByteLevel") return std::make_unique<ByteLevelNormalizer>();
  if (kind == "Lowercase") return std::make_unique<Lowercase>();
  if (kind == "Nmt") return std::make_unique<Nmt>();
  if (kind == "StripAccents") return std::make_unique<StripAccents>();
  return std::make_unique<UnicodeForm>(kind == "NFC"    ? NormalForm::nfc
                                       : kind == "NFD"  ? NormalForm::nfd
                                       : kind == "NFKC" ? NormalForm::nfkc
                                                        : NormalForm::nfkd);
}

}  // namespace

AlignedText Normalizer::apply(AlignedText source, MatchMemory& memory) const {
  AlignedText made = rewrite(std::move(source), memory);
  memory.budget().write(made.text().size(), place_);
  return made;
}

std::unique_ptr<const Normalizer> read_normalizer(const JsonNode& place) {
  std::unique_ptr<Normalizer> made = make_normalizer(place);
  made->place_ = place.path();
  return made;
}

}  // namespace lathe::text
