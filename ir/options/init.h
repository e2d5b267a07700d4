#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/location.h"

namespace lathe {

/// The parameters of a normal distribution.
struct Normal {
  double mean = 0, deviation = 1;
};
/// The bounds of a uniform distribution over [low, high).
struct Uniform {
  double low = 0, high = 1;
};

/// The initial value of a parameter, as data: the runtime draws the numbers on the host (frontend/initial_values.h).
struct Init {
  enum class Kind {
    automatic,       ///< rank >= 2: normal with std = fan_in^-0.5, where fan_in is the last dim; otherwise zeros
    constant,        ///< `a`
    normal,          ///< mean `a`, standard deviation `b`
    uniform,         ///< in [a, b)
    xavier_uniform,  ///< uniform in +-a * sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010, eq. 16)
    xavier_normal,   ///< std = a * sqrt(2 / (fan_in + fan_out))
    kaiming_normal,  ///< std = a / sqrt(fan_in) (He et al. 2015, eq. 10; a = sqrt(2) for ReLU)
    values,          ///< `list`, row-major
  };
  Kind kind = Kind::automatic;
  double a = 0, b = 0;
  std::vector<double> list;

  static Init automatic() { return {}; }
  /// `value` in every element.
  static Init constant(double value) { return {Kind::constant, value, 0, {}}; }
  static Init zeros() { return constant(0); }
  static Init ones() { return constant(1); }
  /// Init::normal({.deviation = 0.02})
  static Init normal(const Normal& of) { return {Kind::normal, of.mean, of.deviation, {}}; }
  static Init uniform(const Uniform& of) { return {Kind::uniform, of.low, of.high, {}}; }
  static Init xavier_uniform(double gain = 1) { return {Kind::xavier_uniform, gain, 0, {}}; }
  static Init xavier_normal(double gain = 1) { return {Kind::xavier_normal, gain, 0, {}}; }
  static Init kaiming_normal(double gain = 1.4142135623730951) { return {Kind::kaiming_normal, gain, 0, {}}; }
  static Init values(std::vector<double> list) { return {Kind::values, 0, 0, std::move(list)}; }

  /// Returns why this is not a valid distribution, such as "a standard deviation of -1"; nothing if it is valid.
  std::optional<std::string> fault() const;
};

/// Throws UserError [init_options] if `init`, the initializer of argument `name`, is not a valid distribution. The
/// error has the line if `at` is known. Called for every declared parameter and state.
void check_init(const Init& init, std::string_view name, const Location& at = {});

/// Returns the same distribution, for a tensor of this shape, as a constant, normal, uniform or list initializer.
Init resolved_init(const Init& init, const std::vector<std::int64_t>& sizes);

/// Returns the number of the stream of random numbers from which an argument's values are drawn: a hash of its name.
std::uint64_t random_stream(std::string_view name);

/// The initializer of one parameter or state, by argument name.
struct Initializer {
  std::string name;
  Init init;
};

}  // namespace lathe
