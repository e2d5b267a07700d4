#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/tensor.h"
#include "frontend/train/parameter_filter.h"
#include "frontend/train/schedule.h"

/// Optimizers as functions in the DSL: an update is ordinary nodes of the training step, which the compiler fuses.
/// The built-in ones in frontend/train/optimizers/ are such functions, and so are your own:
///
///   const Optimizer sign_descent("sign_descent", 1e-3, [](ParameterUpdate& update) {
///     const Tensor mean = update.state("mean");
///     const Tensor next = mean * 0.9 + update.gradient() * 0.1;
///     update.set_state(mean, next);
///     update.set_parameter(update.parameter() - sign(next) * update.rate());
///   });
namespace lathe {

/// Values that the updates of all parameters of an optimizer share.
struct OptimizerStep {
  Tensor count;            ///< f64 scalar: the number of this update, starting at 1
  Tensor rate;             ///< f64 scalar: the learning rate
  std::string scope;       ///< prefix of its states: "optimizer"
  std::string group = {};  ///< name of the parameter group; empty for parameters in no group
  /// Declares the new value of a parameter or state; training.h suppresses it between the updates of accumulated
  /// micro-batches.
  std::function<void(const ir::Value& state, const ir::Value& value)> update = {};
};

/// The update of one parameter. Parameter, gradient and states are in the compute dtype: f64 for f64 parameters, f32
/// for f32, bf16 and f16.
class ParameterUpdate {
 public:
  /// `decays`: whether weight decay applies to the parameter.
  ParameterUpdate(OptimizerStep step, const ir::Value& parameter, const ir::Value& gradient, bool decays);

  const std::string& name() const { return name_; }
  const Shape& shape() const { return stored_.shape(); }
  /// Returns the sizes of the dims. Throws UserError [optimizer_rule] if one is not known when the step is built.
  std::vector<std::int64_t> sizes() const;
  DType dtype() const { return at_least_f32(stored_.dtype()); }  ///< the compute dtype
  Tensor parameter() const;
  Tensor gradient() const;
  /// Whether TrainingOptions::decayed selects the parameter.
  bool decays() const { return decays_; }

  /// Returns the number of this update as an f64 scalar, starting at 1.
  const Tensor& step() const { return step_.count; }
  /// Returns the learning rate as an f64 scalar.
  const Tensor& exact_rate() const { return step_.rate; }
  /// Returns the learning rate in the compute dtype.
  Tensor rate(Where at = Where::current()) const { return rounded(step_.rate, at); }
  /// Returns an f64 scalar in the compute dtype: compute scalars in f64 and round them once.
  Tensor rounded(const Tensor& scalar, Where at = Where::current()) const;

  /// Declares a state of the parameter, "optimizer.<kind>.<parameter>", which starts at zero: in the parameter's
  /// shape and compute dtype, or in another one. Each state must be set.
  Tensor state(std::string_view kind, Where at = Where::current());
  Tensor state(std::string_view kind, DType dtype, const Shape& shape, Where at = Where::current());
  /// Declares an f64 scalar that a GroupRule keeps for its whole group, "optimizer.<kind>" or
  /// "optimizer.<kind>.<group>": call it for the first update of the group alone.
  Tensor group_state(std::string_view kind, Where at = Where::current());
  /// Sets the next value of a state that state() or group_state() returned. Throws UserError [optimizer_rule] for any
  /// other tensor, a second value, or another type.
  void set_state(const Tensor& state, const Tensor& next, Where at = Where::current());
  /// Sets the next value of the parameter: a float tensor of its shape, which is rounded to its dtype. Throws
  /// UserError [optimizer_rule].
  void set_parameter(const Tensor& next, Where at = Where::current());

  /// Throws UserError [optimizer_rule] at `line` unless the parameter and each state have their next values.
  void require_set(const Location& line, std::string_view optimizer) const;

 private:
  struct State {
    std::string kind;
    Tensor now;
    bool is_set = false;
  };
  Tensor declare(std::string_view kind, const std::string& suffix, DType dtype, const Shape& shape, const Where& at);
  [[noreturn]] void refuse(const std::string& message, std::string_view hint, const Where& at) const;

  OptimizerStep step_;
  std::string name_;
  ir::Value stored_, gradient_;  ///< in their own dtypes
  bool decays_;
  std::vector<State> states_ = {};
  bool is_set_ = false;
};

/// A named rule that updates parameters, and its learning rate.
class Optimizer {
 public:
  /// Builds the update of one parameter, or those of all parameters of a group together.
  using Rule = std::function<void(ParameterUpdate& update)>;
  using GroupRule = std::function<void(std::span<ParameterUpdate> updates)>;
  /// The first invalid option, such as "beta1 is 1.5, not in [0, 1)"; nothing if all are valid.

  /// An optimizer of your own. Its ops are built at its own lines. `name` is used in errors.
  Optimizer(std::string name, Schedule lr, Rule rule);
  Optimizer(std::string name, Schedule lr, GroupRule rule);
  /// One of this library: its ops are built at the line of the training step.
  static Optimizer built_in(std::string name, Schedule lr, Rule rule, detail::Fault fault);
  static Optimizer built_in(std::string name, Schedule lr, GroupRule rule, detail::Fault fault);

  const std::string& name() const { return name_; }
  const Schedule& learning_rate() const { return lr_; }
  /// Returns the first invalid option with the optimizer's name: "AdamW: beta1 is 1.5, not in [0, 1)".
  detail::Fault fault() const;
  /// Builds the updates of a group of parameters. Throws UserError [optimizer_rule].
  void add_updates(std::span<ParameterUpdate> updates) const;

 private:
  std::string name_;
  Schedule lr_;
  GroupRule rule_;
  detail::Fault fault_ = {};
  bool built_in_ = false;
};

/// Parameters with their own optimizer: a different rate, decay or rule.
struct ParameterGroup {
  std::string name;            ///< used in its output "learning_rate.<name>" and in errors
  ParameterFilter parameters;  ///< selects its members
  Optimizer optimizer;
};

}  // namespace lathe
