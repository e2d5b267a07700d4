#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <variant>

#include "ir/tensor/builder.h"

namespace lathe {

/// A learning rate as a function of the step; the first update is step 1. A number is a constant rate:
///   AdamW{.lr = 3e-4}
///   AdamW{.lr = Schedule::warmup_cosine({.peak = 3e-4, .warmup = 100, .total = 2000, .floor = 3e-5})}
/// Invalid step counts throw UserError [schedule_steps] at the line that gives them. Rates are checked by the
/// training step that uses the schedule [optimizer_options].
class Schedule {
 public:
  struct WarmupCosine {
    double peak = 0;
    std::int64_t warmup = 0, total = 0;
    double floor = 0;
  };
  struct InverseSqrt {
    double scale = 1;
    std::int64_t warmup = 0;
  };
  struct Noam {
    double factor = 1;
    std::int64_t d_model = 0, warmup = 0;
  };
  struct StepDecay {
    double rate = 0;
    std::int64_t every = 0;
    double gamma = 1;
  };

  /// Constant `rate`.
  Schedule(double rate) : kind_(Constant{rate}) {}  // NOLINT(google-explicit-constructor)
  /// Linear warmup to `peak` at step `warmup`, then a half cosine down to `floor` at step `total`, then constant
  /// `floor`.
  static Schedule warmup_cosine(const WarmupCosine& of,
                                const std::source_location& at = std::source_location::current());
  /// scale * min(step^-0.5, step * warmup^-1.5).
  static Schedule inverse_sqrt(const InverseSqrt& of,
                               const std::source_location& at = std::source_location::current());
  /// The schedule of the Transformer paper (Vaswani et al. 2017, 5.3): factor * d_model^-0.5 * min(step^-0.5, step *
  /// warmup^-1.5).
  static Schedule noam(const Noam& of, const std::source_location& at = std::source_location::current());
  /// rate * gamma^floor((step - 1) / every).
  static Schedule step_decay(const StepDecay& of, const std::source_location& at = std::source_location::current());

  /// Returns the rate as an f64 scalar; `step` is an f64 scalar.
  ir::Value at(const ir::Value& step) const;
  /// Returns the same rate as a number.
  double at(std::int64_t step) const;

  /// Returns the first invalid rate or factor, such as "lr is -1, not a finite number of 0 or more"; nothing if all
  /// are valid.
  std::optional<std::string> fault() const;

 private:
  struct Constant {
    double rate;
  };
  using Kind = std::variant<Constant, WarmupCosine, InverseSqrt, StepDecay>;
  explicit Schedule(Kind kind) : kind_(kind) {}

  Kind kind_;
};

}  // namespace lathe
