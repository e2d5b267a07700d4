#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/train/gradient_hook.h"
#include "frontend/train/loss_scaling.h"
#include "frontend/train/optimizers/optimizers.h"
#include "ir/tensor/builder.h"

/// Whole training steps as one graph: forward, backward, clipping, and the optimizer's in-place update of every
/// parameter. Works on the builder level; training_step of the DSL (frontend/train/step.h) calls it.
namespace lathe {

struct TrainingOptions {
  /// Name of the optimizer, for several training steps over one store, such as those of a GAN. Its states are then
  /// "optimizer.<name>.step" etc. instead of "optimizer.step". May contain letters, digits, _ and -.
  std::string name = {};
  /// Scales the gradients by min(1, clip_norm / (norm + 1e-6)), where norm is the root of the sum of all squares,
  /// like torch.nn.utils.clip_grad_norm_. 0: no clipping.
  double clip_norm = 0;
  /// Whether the norm of all gradients before clipping is an output: "grad_norm". If false and nothing else needs the
  /// norm, each gradient is consumed where it is computed.
  bool report_norm = true;
  /// Micro-batches per update. Each run adds its gradients, divided by this number, to the states
  /// "optimizer.accumulated.<parameter>". Every accumulate-th run updates the parameters and resets the sums; the
  /// others leave the parameters unchanged. Memory use is that of one micro-batch. The result equals that of the full
  /// batch if each micro-batch's loss is a mean over the same number of items.
  std::int64_t accumulate = 1;
  /// Compute precision of matmuls: f32, as the graph is written, or bf16 or f16 for mixed precision
  /// (passes/transforms/dtypes/mixed_precision.h). With f16 the loss is scaled, and a step with non-finite gradients
  /// changes neither parameters nor optimizer states. f16 adds two outputs, "loss_scale" (f32) and "skipped" (bool).
  DType precision = f32;
  LossScaling loss_scaling = {};
  /// Selects the parameters to train; empty: every float parameter.
  ParameterFilter trainable = {};
  /// Excludes parameters from training. training_step() of a Graph adds those that its modules froze.
  ParameterFilter frozen = {};
  /// Selects the parameters with weight decay, for optimizers that have it; empty: all.
  ParameterFilter decayed = {};
  /// Parameters with their own optimizer. A parameter belongs to the first group that selects it, or else uses the
  /// step's own optimizer. Clipping uses the norm of all gradients together.
  std::vector<ParameterGroup> groups = {};
  /// Decay of an exponential moving average of each trained parameter: average = decay * average + (1 - decay) * p
  /// after each update, and p after the first, as torch.optim.swa_utils.AveragedModel. 0: none. The averages are the
  /// states "optimizer.average.<parameter>", in the parameter's dtype; nn::Substitution evaluates a model with them.
  double average_decay = 0;
  /// Selects gradients that are outputs, "grad.<parameter>": unscaled, before clipping, with accumulation the mean so
  /// far. Empty: none. A filter that selects no trained parameter is an error [reported_gradients].
  ParameterFilter reported_gradients = {};
  /// Changes gradients before anything uses them: the norm, outputs, clipping and update all see the result.
  GradientHook gradient_hook = {};
  /// Called with a summary of the trained parameters and of why others are not: "trains 2 of 5 parameters, 5 of 29
  /// numbers; frozen: a.weight, a.bias; not used by the loss: wpe".
  std::function<void(std::string_view)> note = {};
};

/// Adds the backward pass and update of `loss`, a float scalar, to its graph.
///
/// Adds these outputs, all scalars in the dtype of the loss: "loss" (unless its value is an output of that name
/// already), "grad_norm" (before clipping; with accumulation that of the mean so far) and "learning_rate". Options
/// add "learning_rate.<group>" and "grad.<parameter>".
///
/// Adds these states, which start at zero: "optimizer.step" (i64, number of updates done), those of the optimizer,
/// and with accumulation "optimizer.micro_step" (i64, runs since the last update). A named optimizer has the prefix
/// "optimizer.<name>" instead of "optimizer".
///
/// Random states ({seed, step}, read by dropout and other draws) advance by one step per run. Parameters that the
/// loss does not depend on are unchanged.
///
/// Throws UserError [train_loss], [train_parameters], [optimizer_options], [train_groups] for a group without a name,
/// with a duplicate name or without a trained parameter, [gradient_hook], [train_options], [reported_gradients].
/// [train_options] also for mixed precision, which rewrites a finished graph: see below.
void add_training_step(const ir::Value& loss, const Optimizer& optimizer, const TrainingOptions& options = {});

/// Makes the loss the output "loss" unless it is one already.
void add_loss_output(const ir::Value& loss);

/// The same for a finished graph: `loss` names an output, which keeps its name; `line`, if known, is that of the
/// caller.
ir::Graph training_step(const ir::Graph& forward, std::string_view loss, const Optimizer& optimizer,
                        const TrainingOptions& options = {}, const Location& line = {});

/// Adds an update by {0, 1} to every i64[2] state that a random op reads and that has none yet.
void advance_random_states(ir::GraphBuilder& builder);

/// Returns the root of the sum of squares of all elements, in the dtype of the first value; an f64 or f32 scalar.
ir::Value global_norm(std::span<const ir::Value> values);

}  // namespace lathe
