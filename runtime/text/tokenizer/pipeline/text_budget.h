#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lathe::text {

/// Limits on what a tokenizer.json may do with one text, so that no file fills the memory or runs for hours. Both
/// grow with the text.
class TextBudget {
 public:
  /// For a text of this size in bytes.
  explicit TextBudget(std::size_t bytes = 0);

  /// Counts text that `step` wrote, such as "tokenizer.json: normalizer.normalizers[3]". UserError [tokenizer_limit].
  void write(std::size_t bytes, std::string_view step);
  /// How many more bytes steps may write.
  std::size_t writable() const { return writable_; }
  [[noreturn]] void fail(std::string_view step) const;

  /// Counts the work of a regular expression: false if none is left.
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
