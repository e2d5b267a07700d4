#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lathe::text {

/// Work limits of a tokenizer.json for one text, so that no file exhausts memory or runs for hours. They grow with
/// the text.
class TextBudget {
 public:
  /// `bytes` is the size of the text.
  explicit TextBudget(std::size_t bytes = 0);

  /// Counts output of `step`, such as "tokenizer.json: normalizer.normalizers[3]". Throws UserError
  /// [tokenizer_limit].
  void write(std::size_t bytes, std::string_view step);
  /// Returns the number of bytes that may still be written.
  std::size_t writable() const { return writable_; }
  [[noreturn]] void fail(std::string_view step) const;

  /// Counts work of a regular expression. Returns false if the limit is exceeded.
  bool match(std::uint64_t work) {
    if (work > matching_) return false;
    matching_ -= work;
    return true;
  }

 private:
  std::size_t bytes_, writable_;
  std::uint64_t matching_;
};

}  // namespace lathe::text
