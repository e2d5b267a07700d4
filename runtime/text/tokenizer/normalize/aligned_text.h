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

/// Text in valid UTF-8 that was made from an original, and for each of its bytes the part of the original that it
/// came from: all bytes of a character have the same span, and spans ascend.
class AlignedText {
 public:
  AlignedText() = default;
  /// `part` as it is: a part of the original, borrowed, that starts at byte `origin` there.
  explicit AlignedText(std::string_view part, std::uint32_t origin = 0) : view_(part), origin_(origin) {}
  AlignedText(AlignedText&& other) noexcept { *this = std::move(other); }
  AlignedText& operator=(AlignedText&& other) noexcept;

  std::string_view text() const { return view_; }
  /// Whether the text is the part of the original itself.
  bool is_original() const { return is_original_; }
  /// Where the part of the original starts.
  std::uint32_t origin() const { return origin_; }
  /// What byte `at` came from.
  Span span(std::size_t at) const { return is_original_ ? original_span(at) : spans_[at]; }
  /// What bytes [begin, end) came from; end > begin.
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

/// Writes a text from parts of others and from new characters.
class AlignedWriter {
 public:
  /// `origin`: where the part of the original starts; `bytes`: how many are expected.
  AlignedWriter(std::uint32_t origin, std::size_t bytes);

  /// Bytes [begin, end) of `source`, which are whole characters.
  void copy(const AlignedText& source, std::size_t begin, std::size_t end);
  /// New characters, all from `span`.
  void put(std::string_view characters, Span span);
  void put(char32_t code, Span span);

  std::size_t size() const { return result_.owned_.size(); }
  AlignedText finish();

 private:
  AlignedText result_;
};

/// One character of a normal form, and how it is aligned: 0 takes the place of the next character of the source, -n
/// that of the next one and the n after it, 1 is inserted after what has been taken.
struct Change {
  char32_t code = 0;
  int taken = 0;
};

/// Writes changes of bytes [begin, end) of a source.
class ChangeWriter {
 public:
  ChangeWriter(AlignedWriter& out, const AlignedText& source, std::size_t begin, std::size_t end)
      : out_(out), source_(source), at_(begin), end_(end) {}
  void put(const Change& change);

 private:
  AlignedWriter& out_;
  const AlignedText& source_;
  std::size_t at_, end_;  ///< what has not been taken
};

}  // namespace lathe::text
