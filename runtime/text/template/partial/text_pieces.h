#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::jinja {

/// A text in pieces. Texts may share pieces.
class TextPieces {
 public:
  TextPieces() = default;
  /// A text that outlives this.
  explicit TextPieces(std::string_view shared) { share(shared); }

  void append(std::string text);
  /// Appends a text that outlives this.
  void share(std::string_view text);

  std::size_t size() const { return size_; }
  const std::vector<std::string_view>& pieces() const { return pieces_; }
  /// The text from byte `at` on, as pieces of this one.
  TextPieces from(std::size_t at) const;

 private:
  std::vector<std::string_view> pieces_;
  std::vector<std::unique_ptr<const std::string>> owned_;
  std::size_t size_ = 0;
};

/// Returns the length of the common start of two texts. Pieces in the same memory take constant time; `compared` is
/// increased by the length of the others.
std::size_t common_start(const TextPieces& a, const TextPieces& b, std::uint64_t& compared);
/// The same for the last bytes.
std::size_t common_end(const TextPieces& a, const TextPieces& b, std::uint64_t& compared);

}  // namespace lathe::jinja
