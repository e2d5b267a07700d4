#pragma once

#include <cstdint>
#include <vector>

namespace lathe::ir {

using Sizes = std::vector<std::int64_t>;

/// Iterates over the positions of `sizes` in row-major order and tracks offsets of several tensors by their strides
/// (one list per tensor, as long as sizes): for (Walk w(..); !w.done(); w.next()) use(w.offset(0), w.offset(1)).
class Walk {
 public:
  Walk(Sizes sizes, std::vector<Sizes> strides, Sizes starts = {})
      : sizes_(std::move(sizes)),
        strides_(std::move(strides)),
        offsets_(starts.empty() ? Sizes(strides_.size(), 0) : std::move(starts)),
        at_(sizes_.size(), 0) {
    for (const std::int64_t size : sizes_) done_ = done_ || size == 0;
  }

  bool done() const { return done_; }
  std::size_t offset(std::size_t i) const { return static_cast<std::size_t>(offsets_[i]); }

  void next() {
    for (std::size_t d = sizes_.size(); d-- > 0;) {
      const bool carry = ++at_[d] == sizes_[d];
      for (std::size_t i = 0; i < offsets_.size(); ++i)
        offsets_[i] += carry ? -strides_[i][d] * (sizes_[d] - 1) : strides_[i][d];
      if (!carry) return;
      at_[d] = 0;
    }
    done_ = true;
  }

 private:
  Sizes sizes_;
  std::vector<Sizes> strides_;
  Sizes offsets_;
  Sizes at_;
  bool done_ = false;
};

/// Returns row-major strides in elements.
inline Sizes dense_strides(const Sizes& sizes) {
  Sizes strides(sizes.size(), 1);
  for (std::size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  return strides;
}

}  // namespace lathe::ir
