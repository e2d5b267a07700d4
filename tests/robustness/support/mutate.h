#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::robustness {

/// Makes texts and bytes that are almost valid, deterministically by seed.
class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : random_(seed) {}

  /// Returns 0 .. n - 1; n > 0.
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
  bool one_in(std::size_t n) { return below(n) == 0; }
  template <class T>
  const T& any(std::span<const T> of) {
    return of[below(of.size())];
  }

  /// Changes, removes, inserts, duplicates or moves some bytes.
  std::string bytes(std::string text);
  /// Changes some words, numbers, quoted texts, punctuation marks and lines: deletes, duplicates or swaps them,
  /// replaces them with each other or with those of `other`, or with extreme numbers and names.
  std::string words(std::string_view text, std::string_view other);
  /// Applies one of both.
  std::string any_kind(std::string_view text, std::string_view other);

 private:
  std::string edge();
  std::mt19937_64 random_;
};

}  // namespace lathe::robustness
