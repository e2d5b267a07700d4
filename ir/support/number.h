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

/// A number as a program writes it: any double, or any integer of 64 bits, exactly. Arithmetic types convert to it.
/// Equality is that of doubles: 0 equals -0, a NaN differs from itself.
class Number {
 public:
  constexpr Number() = default;
  template <class T>
    requires std::is_arithmetic_v<T>
  constexpr Number(T value) : real_(static_cast<double>(value)) {  // NOLINT(google-explicit-constructor)
    if constexpr (std::integral<T> && sizeof(T) == 8)
      rest_ = static_cast<std::int64_t>(static_cast<std::uint64_t>(value) - wrapped(real_));
  }

  /// The nearest double.
  constexpr double real() const { return real_; }
  /// Whether real() is the number itself.
  constexpr bool is_double() const { return rest_ == 0; }
  /// The number less real(); 0 except for large integers.
  constexpr std::int64_t integer_rest() const { return rest_; }
  /// Whether it is a whole number that i64 holds.
  bool is_i64() const;
  /// The number where is_i64().
  constexpr std::int64_t integer() const {
    return static_cast<std::int64_t>(wrapped(real_) + static_cast<std::uint64_t>(rest_));
  }
  /// Whether a float dtype has a value next to it, an integer dtype the value itself; a bool is 0 or 1.
  bool fits(DType dtype) const;
  /// The nearest value of a float dtype, rounded once, ties to even; itself where the dtype is an integer that it
  /// fits. A complex dtype rounds as its parts do.
  Number rounded_to(DType dtype) const;
  /// "0.1", "3", "9007199254740993"
  std::string to_string() const;

  constexpr bool operator==(const Number&) const = default;

 private:
  friend class NumberList;
  constexpr Number(double real, std::int64_t rest) : real_(real), rest_(rest) {}
  /// A whole number from -2^63 to 2^64, modulo 2^64.
  static constexpr std::uint64_t wrapped(double whole) {
    if (whole < 0) return static_cast<std::uint64_t>(static_cast<std::int64_t>(whole));
    return whole < 0x1p64 ? static_cast<std::uint64_t>(whole) : 0;
  }

  double real_ = 0;
  std::int64_t rest_ = 0;  ///< what an integer of 64 bits is more than `real_`
};

/// A list of numbers, in the memory of as many doubles where all of them are doubles.
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
  /// The same numbers as `dtype` has them.
  NumberList rounded_to(DType dtype) const;
  /// Each as the nearest double.
  const std::vector<double>& reals() const { return reals_; }
  /// Each number less its double; empty where all are 0.
  const std::vector<std::int64_t>& integer_rests() const { return rests_; }

  bool operator==(const NumberList&) const = default;

 private:
  std::vector<double> reals_;
  std::vector<std::int64_t> rests_;  ///< as in Number; none where all are 0
};

}  // namespace lathe
