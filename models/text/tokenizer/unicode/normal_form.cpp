#include "models/text/tokenizer/unicode/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "models/text/tokenizer/unicode/older_unicode.h"
#include "models/text/tokenizer/unicode/utf8.h"

namespace lathe::text {

namespace {

bool composes(NormalForm form) { return form == NormalForm::nfc || form == NormalForm::nfkc; }
bool is_compatible(NormalForm form) { return form == NormalForm::nfkc || form == NormalForm::nfkd; }

const utf8proc_property_t& property(char32_t code) {
  return *utf8proc_get_property(static_cast<utf8proc_int32_t>(code));
}

int combining_class(char32_t code) {
  const auto found = property(code).combining_class;
  return found != 0 && older_without_class(code) ? 0 : found;
}

bool is_hangul_syllable(char32_t code) { return code >= 0xAC00 && code <= 0xD7A3; }
bool is_jamo(char32_t code) { return code >= 0x1100 && code <= 0x11FF; }

/// Returns whether a character is unchanged, is not reordered, and is never the second character of a composition.
bool is_inert(char32_t code, NormalForm form) {
  const char32_t first_changed = form == NormalForm::nfc ? 0x300 : form == NormalForm::nfd ? 0xC0 : 0xA0;
  if (code < first_changed) return true;
  if (is_hangul_syllable(code)) return composes(form);
  const utf8proc_property_t& found = property(code);
  return found.decomp_seqindex == UINT16_MAX && found.comb_index == UINT16_MAX && found.combining_class == 0 &&
         !is_jamo(code);
}

std::optional<char32_t> compose(char32_t first, char32_t second) {
  std::array<utf8proc_int32_t, 2> pair{static_cast<utf8proc_int32_t>(first), static_cast<utf8proc_int32_t>(second)};
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  if (utf8proc_normalize_utf32(pair.data(), 2, options) != 1) return std::nullopt;
  const auto composed = static_cast<char32_t>(pair[0]);
  return older_whole(composed) ? std::nullopt : std::optional(composed);
}

/// The characters between two inert ones.
class Stretch {
 public:
  explicit Stretch(NormalForm form) : form_(form) {}

  void add(char32_t code) {
    std::array<utf8proc_int32_t, 32> parts{};  // the longest decomposition has 18 characters
    const int options = UTF8PROC_DECOMPOSE | (is_compatible(form_) ? UTF8PROC_COMPAT : 0);
    utf8proc_ssize_t count = 1;
    parts[0] = static_cast<utf8proc_int32_t>(code);
    if (!older_whole(code))
      count = utf8proc_decompose_char(parts[0], parts.data(), parts.size(), static_cast<utf8proc_option_t>(options),
                                      nullptr);
    for (utf8proc_ssize_t i = 0; i < count; ++i) push({static_cast<char32_t>(parts[i]), i > 0 ? 1 : 0});
  }

  /// Returns the normal form of the added characters.
  std::span<const Change> finish() {
    sort_marks();
    if (composes(form_)) compose_all();
    return changes_;
  }

  void clear() {
    changes_.clear();
    marks_ = 0;
  }

 private:
  void push(Change change) {
    if (combining_class(change.code) == 0) sort_marks();
    changes_.push_back(change);
    if (combining_class(change.code) == 0) marks_ = changes_.size();
  }

  /// Sorts the marks after the last starter by combining class.
  void sort_marks() {
    std::stable_sort(
        changes_.begin() + static_cast<std::ptrdiff_t>(marks_), changes_.end(),
        [](const Change& a, const Change& b) { return combining_class(a.code) < combining_class(b.code); });
    marks_ = changes_.size();
  }

  /// Composes each starter with the marks or the next starter that compose with it, unless a character in between has
  /// the same or a higher class.
  void compose_all() {
    std::size_t kept = 0;  // number of changes that are final
    std::optional<std::size_t> starter;
    int last_class = -1;  // class of the last character kept after the starter
    for (const Change next : changes_) {
      const int next_class = combining_class(next.code);
      if (starter && (last_class < next_class || last_class == -1)) {
        Change& first = changes_[*starter];
        if (const auto composed = compose(first.code, next.code)) {
          first = {*composed, first.taken + next.taken - 1};
          continue;
        }
      }
      changes_[kept] = next;
      if (next_class == 0) starter = kept;
      last_class = next_class == 0 ? -1 : next_class;
      ++kept;
    }
    changes_.resize(kept);
  }

  NormalForm form_;
  std::vector<Change> changes_;
  std::size_t marks_ = 0;  ///< start of the characters after the last starter
};

}  // namespace

AlignedText to_normal_form(AlignedText source, NormalForm form) {
  const std::string_view text = source.text();
  AlignedWriter out(source.origin(), text.size() + text.size() / 8);
  Stretch stretch(form);
  std::size_t copied = 0;  // bytes written so far
  std::size_t last = 0;    // the inert character before `at`, or `at` itself
  for (std::size_t at = 0; at < text.size();) {
    Character next = character_at(text, at);
    if (is_inert(next.code, form)) {
      last = at;
      at += next.size;
      continue;
    }
    out.copy(source, copied, last);
    if (last < at) stretch.add(character_at(text, last).code);
    const std::size_t begin = last;
    do {
      stretch.add(next.code);
      at += next.size;
      if (at < text.size()) next = character_at(text, at);
    } while (at < text.size() && !is_inert(next.code, form));
    ChangeWriter changes(out, source, begin, at);
    for (const Change& change : stretch.finish()) changes.put(change);
    stretch.clear();
    copied = last = at;
  }
  if (copied == 0) return source;
  out.copy(source, copied, text.size());
  return out.finish();
}

}  // namespace lathe::text
