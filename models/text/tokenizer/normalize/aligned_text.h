#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::text {

/// Bytes [begin, end) of a text.
struct Span {
  std::uint32_t begin = 0, end = 0;
  friend bool operator==(const Span&, const Span&) = default;
};

/// Valid UTF-8 text derived from an original. Each byte has the span of the original from which it was derived. All
/// bytes of a character have the same span, and spans are ascending.
class AlignedText {
 public:
  AlignedText() = default;
  /// Borrows `part` of the original, which starts there at byte `origin`, unchanged.
  explicit AlignedText(std::string_view part, std::uint32_t origin = 0) : view_(part), origin_(origin) {}
  AlignedText(AlignedText&& other) noexcept { *this = std::move(other); }
  AlignedText& operator=(AlignedText&& other) noexcept;

  std::string_view text() const { return view_; }
  /// Returns whether the text is an unchanged part of the original.
  bool is_original() const { return is_original_; }
  /// Returns the start of the part in the original.
  std::uint32_t origin() const { return origin_; }
  /// Returns the span of byte `at` in the original.
  Span span(std::size_t at) const { return is_original_ ? original_span(at) : spans_[at]; }
  /// Returns the span of bytes [begin, end) in the original; end > begin.
  Span cover(std::size_t begin, std::size_t end) const { return {span(begin).begin, span(end - 1).end}; }

 private:
  friend class AlignedWriter;
  Span original_span(std::size_t at) const;

  std::string_view view_;
  std::string owned_;
  std::vector<Span> spans_;
  std::uint32_t origin_ = 0;
  bool is_original_ = true;
};

/// Builds a text from parts of others and from new characters.
class AlignedWriter {
 public:
  /// `origin` is the start of the part in the original; `bytes` is the expected size.
  AlignedWriter(std::uint32_t origin, std::size_t bytes);

  /// Appends bytes [begin, end) of `source`, which must be whole characters.
  void copy(const AlignedText& source, std::size_t begin, std::size_t end);
  /// Appends new characters, all with the span `span`.
  void put(std::string_view characters, Span span);
  void put(char32_t code, Span span);

  std::size_t size() const { return result_.owned_.size(); }
  AlignedText finish();

 private:
  AlignedText result_;
};

/// A character of a normal form and its alignment. 0 replaces the next source character, -n replaces the next one and
/// the n after it, and 1 inserts after the characters replaced so far.
struct Change {
  char32_t code = 0;
  int taken = 0;
};

/// Applies changes to bytes [begin, end) of a source.
class ChangeWriter {
 public:
  ChangeWriter(AlignedWriter& out, const AlignedText& source, std::size_t begin, std::size_t end)
      : out_(out), source_(source), at_(begin), end_(end) {}
  void put(const Change& change);

 private:
  AlignedWriter& out_;
  const AlignedText& source_;
  std::size_t at_, end_;  ///< range not yet replaced
};

}  // namespace lathe::text
