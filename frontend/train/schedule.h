#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>

#include "frontend/tensor.h"

namespace lathe {

namespace detail {
/// The error message for an invalid option; empty if the option is valid.
using Fault = std::optional<std::string>;
}  // namespace detail

/// A learning rate as a function of the step; the first update is step 1. A number is a constant rate, and any
/// function from the step to a rate is a schedule, in DSL code that becomes part of the compiled step:
///   AdamW{.lr = 3e-4}
///   AdamW{.lr = Schedule::warmup_cosine({.peak = 3e-4, .warmup = 100, .total = 2000, .floor = 3e-5})}
///   AdamW{.lr = [](const Tensor& step) { return 3e-4 / sqrt(step); }}
/// Invalid step counts throw UserError [schedule_steps] at the line that gives them. Rates are checked by the
/// training step that uses the schedule [optimizer_options].
class Schedule {
 public:
  /// Builds the rate, an f64 scalar, from the number of the update, an f64 scalar.
  using Rate = std::function<Tensor(const Tensor& step)>;

  struct WarmupCosine {
    double peak = 0;
    std::int64_t warmup = 0, total = 0;
    double floor = 0;
  };
  struct WarmupLinear {
    double peak = 0;
    std::int64_t warmup = 0, total = 0;
    double floor = 0;
  };
  struct WarmupStableDecay {
    double peak = 0;
    std::int64_t warmup = 0, decay = 0, total = 0;
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
    std::int64_t warmup = 0;
  };
  struct OneCycle {
    double peak = 0;
    std::int64_t total = 0;
    double rising = 0.3;       ///< fraction of the steps before the peak
    double start_factor = 25;  ///< the first rate is peak / start_factor
    double end_factor = 1e4;   ///< the last rate is the first one / end_factor
  };

  /// Constant `rate`.
  Schedule(double rate);  // NOLINT(google-explicit-constructor)
  /// A function of your own. Its ops are built at its own lines, and its result must be an f64 scalar
  /// [optimizer_options].
  template <class Function>
    requires std::is_invocable_r_v<Tensor, const Function&, const Tensor&>
  Schedule(Function rate) : rate_(std::move(rate)) {}  // NOLINT(google-explicit-constructor)

  /// Linear warmup to `peak` at step `warmup`, then a half cosine down to `floor` at step `total`, then constant
  /// `floor`.
  static Schedule warmup_cosine(const WarmupCosine& of,
                                const std::source_location& at = std::source_location::current());
  /// The same with a straight line down.
  static Schedule warmup_linear(const WarmupLinear& of,
                                const std::source_location& at = std::source_location::current());
  /// Linear warmup to `peak` at step `warmup`, constant `peak`, and in the last `decay` of `total` steps a straight
  /// line down to `floor`, then constant `floor` (Hu et al. 2024, MiniCPM, 4).
  static Schedule warmup_stable_decay(const WarmupStableDecay& of,
                                      const std::source_location& at = std::source_location::current());
  /// scale * min(step^-0.5, step * warmup^-1.5).
  static Schedule inverse_sqrt(const InverseSqrt& of,
                               const std::source_location& at = std::source_location::current());
  /// The schedule of the Transformer paper (Vaswani et al. 2017, 5.3): factor * d_model^-0.5 * min(step^-0.5, step *
  /// warmup^-1.5).
  static Schedule noam(const Noam& of, const std::source_location& at = std::source_location::current());
  /// rate * gamma^floor((step - 1) / every), after a linear warmup to `rate` at step `warmup`, whose steps do not
  /// count.
  static Schedule step_decay(const StepDecay& of, const std::source_location& at = std::source_location::current());
  /// torch.optim.lr_scheduler.OneCycleLR: half cosines from peak / start_factor up to `peak`, and from there down to
  /// the first rate / end_factor at step `total`, then constant (Smith and Topin 2018).
  static Schedule one_cycle(const OneCycle& of, const std::source_location& at = std::source_location::current());

  /// Returns the rate as an f64 scalar; `step` is an f64 scalar.
  Tensor at(const Tensor& step) const;

  /// Returns the first invalid rate or factor, such as "lr is -1, not a finite number of 0 or more"; nothing if all
  /// are valid.
  const std::optional<std::string>& fault() const { return fault_; }

 private:
  /// A schedule of this class: its ops are built at the line that uses it.
  Schedule(Rate rate, detail::Fault fault) : rate_(std::move(rate)), fault_(std::move(fault)), built_in_(true) {}

  Rate rate_;
  detail::Fault fault_ = {};
  bool built_in_ = false;
};

}  // namespace lathe
