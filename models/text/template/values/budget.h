#pragma once

#include <cstdint>

#include "models/text/template/values/failure.h"

namespace lathe::jinja {

/// Work limit of a render, so that no template runs forever or exhausts memory. One unit is about one byte written or
/// 16 bytes read; each operation and each object costs a few units.
class Budget {
 public:
  explicit Budget(std::uint64_t work) : work_(work), left_(work) {}

  /// Throws Failure [template_limit] if less than `work` is left.
  void spend(std::uint64_t work) {
    if (work > left_)
      fail_limit("the template does more work than a render may", "RenderLimits::work sets how much that is");
    left_ -= work;
  }
  /// Spends the work of operations that are skipped because their result is known.
  void spend_skipped(std::uint64_t work) {
    spend(work);
    skipped_ += work;
  }
  std::uint64_t spent() const { return work_ - left_; }
  /// Returns the work spent, without skipped work.
  std::uint64_t done() const { return spent() - skipped_; }
  void spend_reading(std::uint64_t bytes) { spend(1 + bytes / 16); }
  /// Spends the work of a search for `wanted` bytes in `bytes`. Searches for long texts are slow in the worst case.
  void spend_searching(std::uint64_t bytes, std::uint64_t wanted) {
    spend(1 + (wanted <= 16 ? bytes / 4 : wanted <= 256 ? bytes : 4 * bytes));
  }

 private:
  std::uint64_t work_, left_, skipped_ = 0;
};

}  // namespace lathe::jinja
