#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/train/gradient_hook.h"
#include "frontend/train/loss_scaling.h"
#include "frontend/train/optim.h"
#include "ir/tensor/builder.h"

/// Whole training steps as one graph: forward, backward, clipping, and the optimizer's update of every parameter in
/// place. Builder level: the DSL's training_step (frontend/graph.h) calls these.
namespace lathe {

struct TrainingOptions {
  /// Of the optimizer, for several training steps over one store, such as those of a GAN: its states are then
  /// "optimizer.<name>.step" and so on in place of "optimizer.step". Letters, digits, _ and -.
  std::string name = {};
  /// Scales the gradients by min(1, clip_norm / (norm + 1e-6)), norm being the root of the sum of all squares, as
  /// torch.nn.utils.clip_grad_norm_ does. 0: no clipping.
  double clip_norm = 0;
  /// Whether the norm of all gradients, before clipping, is an output: "grad_norm". Where nothing else wants it, each
  /// gradient is otherwise used up where it is made.
  bool report_norm = true;
  /// Micro-batches that make one update. Each run of the step adds its gradients, divided by this number, to the
  /// states "optimizer.accumulated.<parameter>"; every accumulate-th run updates the parameters and starts anew, the
  /// others leave them alone. So memory is that of one micro-batch, and the result is that of the big batch where
  /// each micro-batch's loss is a mean over equally many items.
  std::int64_t accumulate = 1;
  /// What products are computed in: f32, as the graph is written, or bf16 or f16 in mixed precision
  /// (passes/transforms/mixed_precision.h). With f16 the loss is scaled, and a step whose gradients are not finite
  /// leaves parameters and optimizer states as they are. In f16 there are two more outputs, "loss_scale" (f32) and
  /// "skipped" (bool).
  DType precision = f32;
  LossScaling loss_scaling = {};
  /// Which parameters are trained; empty: every float parameter.
  ParameterFilter trainable = {};
  /// Which of them stay as they are all the same. training_step() of a Graph adds what its modules froze.
  ParameterFilter frozen = {};
  /// Which of them decay, for optimizers with weight decay; empty: all.
  ParameterFilter decayed = {};
  /// Parameters with an optimizer of their own; the first group that has a parameter counts, and what none has takes
  /// the step's own optimizer. The norm that clips is that of all gradients together.
  std::vector<ParameterGroup> groups = {};
  /// Which gradients are outputs, "grad.<parameter>": with accumulation the mean so far, before clipping, not scaled.
  /// Empty: none. A filter that chooses no trained parameter is an error [reported_gradients].
  ParameterFilter reported_gradients = {};
  /// Changes gradients before anything reads them: norm, outputs, clipping and update see what it gives.
  GradientHook gradient_hook = {};
  /// Called with a text that says which parameters are trained and why others are not: "trains 2 of 5 parameters, 5
  /// of 29 numbers; frozen: a.weight, a.bias; not used by the loss: wpe".
  std::function<void(std::string_view)> note = {};
};

/// Adds backward and update of `loss`, a float scalar, to its graph. New outputs: "loss" (unless there is one of this
/// value), "grad_norm" (before clipping; with accumulation: of the mean so far) and "learning_rate", all scalars in
/// the dtype of the loss, and what options ask for: "learning_rate.<group>", "grad.<parameter>". New states:
/// "optimizer.step" (i64, updates done), those of the optimizer, and with accumulation "optimizer.micro_step" (i64,
/// runs since the last update). Every state starts at zero. A named optimizer has the prefix "optimizer.<name>"
/// instead of "optimizer". Random states
/// ({seed, step} read by dropout and other draws) advance by one step a run. Parameters that the loss does not depend
/// on stay as they are. Throws UserError [train_loss], [train_parameters], [optimizer_options], [train_groups] for
/// a group without a name, with that of another, or without a trained parameter, [gradient_hook], [train_options],
/// [reported_gradients]; [train_options] also for mixed precision, which rewrites a finished graph: see below.
void add_training_step(const ir::Value& loss, const Optimizer& optimizer, const TrainingOptions& options = {});

/// Makes the loss the output "loss", unless it is.
void add_loss_output(const ir::Value& loss);

/// The same for a finished graph: `loss` names an output, which keeps its name; `line`, if known, is where the step
/// is asked for.
ir::Graph training_step(const ir::Graph& forward, std::string_view loss, const Optimizer& optimizer,
                        const TrainingOptions& options = {}, const Location& line = {});

/// Adds {0, 1} to every i64[2] state that a random op reads and that has no update yet.
void advance_random_states(ir::GraphBuilder& builder);

/// The root of the sum of all elements' squares, in the dtype of the first; an f64 or f32 scalar.
ir::Value global_norm(std::span<const ir::Value> values);

}  // namespace lathe
