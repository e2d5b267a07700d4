#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::jinja {

/// A text stored as a list of pieces, which texts may share.
class TextPieces {
 public:
  TextPieces() = default;
  /// `shared` must outlive this object.
  explicit TextPieces(std::string_view shared) { share(shared); }

  void append(std::string text);
  /// Appends a text that must outlive this object.
  void share(std::string_view text);

  std::size_t size() const { return size_; }
  const std::vector<std::string_view>& pieces() const { return pieces_; }
  /// Returns the text from byte `at` on, which shares pieces with this one.
  TextPieces from(std::size_t at) const;

 private:
  std::vector<std::string_view> pieces_;
  std::vector<std::unique_ptr<const std::string>> owned_;
  std::size_t size_ = 0;
};

/// Returns the length of the common prefix. Pieces in the same memory take constant time; adds the length of all
/// others to `compared`.
std::size_t common_start(const TextPieces& a, const TextPieces& b, std::uint64_t& compared);
/// Returns the same for the common suffix.
std::size_t common_end(const TextPieces& a, const TextPieces& b, std::uint64_t& compared);

}  // namespace lathe::jinja
