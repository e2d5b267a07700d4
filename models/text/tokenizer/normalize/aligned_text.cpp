#include "models/text/tokenizer/normalize/aligned_text.h"

#include <algorithm>
#include <utility>

#include "models/text/tokenizer/unicode/utf8.h"

namespace lathe::text {

AlignedText& AlignedText::operator=(AlignedText&& other) noexcept {
  is_original_ = other.is_original_;
  origin_ = other.origin_;
  spans_ = std::move(other.spans_);
  owned_ = std::move(other.owned_);  // short strings are stored in the object, so view_ must be updated
  view_ = is_original_ ? other.view_ : std::string_view(owned_);
  return *this;
}

Span AlignedText::original_span(std::size_t at) const {
  while (!starts_character(view_[at])) --at;
  const auto begin = static_cast<std::uint32_t>(origin_ + at);
  return {begin, begin + character_size(view_[at])};
}

AlignedWriter::AlignedWriter(std::uint32_t origin, std::size_t bytes) {
  result_.is_original_ = false;
  result_.origin_ = origin;
  result_.owned_.reserve(bytes);
  result_.spans_.reserve(bytes);
}

void AlignedWriter::copy(const AlignedText& source, std::size_t begin, std::size_t end) {
  result_.owned_.append(source.view_, begin, end - begin);
  if (!source.is_original_) {
    const auto spans = source.spans_.begin();
    result_.spans_.insert(result_.spans_.end(), spans + static_cast<std::ptrdiff_t>(begin),
                          spans + static_cast<std::ptrdiff_t>(end));
    return;
  }
  for (std::size_t at = begin; at < end;) {
    const std::uint32_t size = character_size(source.view_[at]);
    const auto first = static_cast<std::uint32_t>(source.origin_ + at);
    result_.spans_.insert(result_.spans_.end(), size, Span{first, first + size});
    at += size;
  }
}

void AlignedWriter::put(std::string_view characters, Span span) {
  result_.owned_.append(characters);
  result_.spans_.insert(result_.spans_.end(), characters.size(), span);
}

void AlignedWriter::put(char32_t code, Span span) {
  append_character(result_.owned_, code);
  result_.spans_.resize(result_.owned_.size(), span);
}

AlignedText AlignedWriter::finish() {
  result_.view_ = result_.owned_;
  return std::move(result_);
}

void ChangeWriter::put(const Change& change) {
  if (change.taken > 0 || at_ >= end_) {
    out_.put(change.code, at_ > 0 ? source_.span(at_ - 1) : Span{source_.origin(), source_.origin()});
    return;
  }
  out_.put(change.code, source_.span(at_));
  for (int i = 0; i >= change.taken && at_ < end_; --i) at_ += character_size(source_.text()[at_]);
}

}  // namespace lathe::text
