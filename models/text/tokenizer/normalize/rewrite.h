#pragma once

#include <optional>

#include "models/text/tokenizer/normalize/aligned_text.h"
#include "models/text/tokenizer/unicode/utf8.h"

namespace lathe::text {

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

}  // namespace lathe::text
