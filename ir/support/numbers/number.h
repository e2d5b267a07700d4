#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/support/dtype.h"

namespace lathe {

/// A number in a program: any double, or any 64-bit integer, exactly. Converts implicitly from arithmetic types.
/// Equality is that of doubles: 0 equals -0, and a NaN differs from itself.
class Number {
 public:
  constexpr Number() = default;
  template <class T>
    requires std::is_arithmetic_v<T>
  constexpr Number(T value) : real_(static_cast<double>(value)) {  // NOLINT(google-explicit-constructor)
    if constexpr (std::integral<T> && sizeof(T) == 8)
      rest_ = static_cast<std::int64_t>(static_cast<std::uint64_t>(value) - wrapped(real_));
  }

  /// Returns the nearest double.
  constexpr double real() const { return real_; }
  /// Returns whether real() is exact.
  constexpr bool is_double() const { return rest_ == 0; }
  /// Returns the number minus real(); 0 except for large integers.
  constexpr std::int64_t integer_rest() const { return rest_; }
  /// Returns whether it is an integer that fits i64.
  bool is_i64() const;
  /// Returns the integer; requires is_i64().
  constexpr std::int64_t integer() const {
    return static_cast<std::int64_t>(wrapped(real_) + static_cast<std::uint64_t>(rest_));
  }
  /// Returns whether the dtype can represent the number: a float dtype rounded, an integer dtype exactly; a bool is 0
  /// or 1.
  bool fits(DType dtype) const;
  /// Returns the nearest value of a float dtype, rounded once, ties to even. Unchanged for an integer dtype that it
  /// fits. A complex dtype rounds like its parts.
  Number rounded_to(DType dtype) const;
  /// "0.1", "3", "9007199254740993"
  std::string to_string() const;

  constexpr bool operator==(const Number&) const = default;

 private:
  friend class NumberList;
  constexpr Number(double real, std::int64_t rest) : real_(real), rest_(rest) {}
  /// Converts an integer from -2^63 to 2^64 modulo 2^64.
  static constexpr std::uint64_t wrapped(double whole) {
    if (whole < 0) return static_cast<std::uint64_t>(static_cast<std::int64_t>(whole));
    return whole < 0x1p64 ? static_cast<std::uint64_t>(whole) : 0;
  }

  double real_ = 0;
  std::int64_t rest_ = 0;  ///< a 64-bit integer minus `real_`
};

/// A list of numbers; stores one double per number if all of them are doubles.
class NumberList {
 public:
  NumberList() = default;
  NumberList(std::initializer_list<Number> numbers) {
    for (const Number& number : numbers) push_back(number);
  }
  NumberList(std::vector<double> numbers) : reals_(std::move(numbers)) {}  // NOLINT(google-explicit-constructor)
  NumberList(const std::vector<std::int64_t>& numbers) {                   // NOLINT(google-explicit-constructor)
    for (const std::int64_t number : numbers) push_back(number);
  }

  std::size_t size() const { return reals_.size(); }
  bool empty() const { return reals_.empty(); }
  Number operator[](std::size_t i) const { return {reals_[i], rests_.empty() ? 0 : rests_[i]}; }
  void push_back(const Number& number);
  /// Returns the numbers rounded to `dtype`.
  NumberList rounded_to(DType dtype) const;
  /// Returns each number as the nearest double.
  const std::vector<double>& reals() const { return reals_; }
  /// Returns each number minus its double; empty if all are 0.
  const std::vector<std::int64_t>& integer_rests() const { return rests_; }

  bool operator==(const NumberList&) const = default;

 private:
  std::vector<double> reals_;
  std::vector<std::int64_t> rests_;  ///< as in Number; empty if all are 0
};

}  // namespace lathe
