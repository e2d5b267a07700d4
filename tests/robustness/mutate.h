#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::robustness {

/// Makes texts and bytes that are nearly right. All of it comes from the seed.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  /// 0 .. n - 1; n > 0.
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
  bool one_in(std::size_t n) { return below(n) == 0; }
  template <class T>
  const T& any(std::span<const T> of) {
    return of[below(of.size())];
  }

  /// Some bytes otherwise, less, more, twice, or in another place.
  std::string bytes(std::string text);
  /// Some words, numbers, quoted texts, marks and lines of it otherwise: gone, twice, swapped, in the place of each
  /// other or of those of `other`, or numbers and names of the ends of their ranges.
  std::string words(std::string_view text, std::string_view other);
  /// Either.
  std::string any_kind(std::string_view text, std::string_view other);

 private:
  std::string edge();
  std::mt19937_64 random_;
};

}  // namespace lathe::robustness
