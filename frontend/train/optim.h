#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "frontend/train/schedule.h"
#include "ir/tensor/builder.h"

/// Optimizers as graphs: an update is ordinary element-wise nodes, and GraphBuilder::update writes the result to the
/// parameter. Moments are computed and stored in f64 for f64 parameters, and in f32 for f32, bf16 and f16. The
/// learning rate and bias corrections are f64 scalars. Every optimizer state starts at zero.
namespace lathe {

/// g += weight_decay * p;  buffer = momentum * buffer + g;  p -= lr * (nesterov ? g + momentum * buffer : buffer).
/// As torch.optim.SGD without dampening; the state is "optimizer.momentum.<parameter>".
struct SGD {
  Schedule lr = 1e-2;
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

/// torch.optim.Adam: weight decay is added to the gradient (Kingma and Ba 2015, algorithm 1). The states are
/// "optimizer.m.<parameter>" and "optimizer.v.<parameter>".
struct Adam {
  Schedule lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
};

/// torch.optim.AdamW, in its order: p *= 1 - lr * weight_decay, then Adam's step
/// p -= (lr / (1 - beta1^t)) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)   (Loshchilov and Hutter 2019, algorithm 2).
struct AdamW {
  Schedule lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
};

using Optimizer = std::variant<SGD, Adam, AdamW>;

/// Returns the schedule of an optimizer, whichever it is.
const Schedule& learning_rate(const Optimizer& optimizer);

/// Returns the first invalid option, such as "AdamW: beta1 is 1.5, not in [0, 1)"; nothing if all are valid.
std::optional<std::string> fault_of(const Optimizer& optimizer);

/// Selects parameters by name, shape or dtype.
using ParameterFilter = std::function<bool(const ir::Node& parameter)>;
/// Selects parameters of rank >= 2: the usual group with weight decay (no biases, no norms).
ParameterFilter matrices();
/// Select parameters whose name contains one of `parts`, or none of them.
ParameterFilter names_with(std::vector<std::string> parts);
ParameterFilter names_without(std::vector<std::string> parts);

/// Parameters with their own optimizer: a different rate, decay or rule.
struct ParameterGroup {
  std::string name;            ///< used in its output "learning_rate.<name>" and in errors
  ParameterFilter parameters;  ///< selects its members
  Optimizer optimizer;
};

/// State shared by the updates of all parameters.
struct OptimizerStep {
  ir::Value count;    ///< f64 scalar: the number of this update, starting at 1
  ir::Value rate;     ///< f64 scalar: the learning rate
  std::string scope;  ///< prefix of its states: "optimizer"
  /// Declares the new value of a parameter or state; training.h suppresses it between the updates of accumulated
  /// micro-batches.
  std::function<void(const ir::Value& state, const ir::Value& value)> update;
};

/// Adds the update of one parameter. `decay` false: without weight decay.
void add_update(const Optimizer& optimizer, const OptimizerStep& step, const ir::Value& parameter,
                const ir::Value& gradient, bool decay);

}  // namespace lathe
