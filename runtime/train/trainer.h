#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/executable.h"
#include "runtime/train/batches.h"
#include "runtime/train/divergence.h"
#include "runtime/train/loss_history.h"
#include "runtime/train/run_folder.h"
#include "runtime/train/run_settings.h"
#include "runtime/train/step_report.h"
#include "runtime/train/trained_tensors.h"

namespace lathe {

/// The value, whole, that a parameter or state of this name starts with.
using StartValue = std::function<HostTensor(const std::string& name)>;

/// An evaluation on data kept apart.
struct Evaluation {
  ir::Graph graph;           ///< with the loss as an output; it is compiled with Mode::evaluation
  Batches batches;           ///< of equally many items, since the losses are averaged
  std::int64_t count = 8;    ///< batches an evaluation
  std::int64_t every = 100;  ///< steps
};

struct TrainerOptions {
  std::optional<Evaluation> evaluation = {};
  /// For checkpoints; none: nothing is kept, and every run starts anew. Of several processes rank 0 alone has it.
  RunFolder folder = {};
  std::int64_t save_every = 200;  ///< steps
  /// Parameters that no step changes are saved too. False: checkpoints leave them out, and whoever goes on gives them
  /// again in compile.parameters; so a checkpoint of an adapter does not hold the model that it belongs to.
  bool save_constants = true;
  RunSettings settings = {};
  std::string loss = "loss";  ///< the output of the step, and of the evaluation, that is the loss
  /// Of both graphs. Tuning, the memory budget, known sizes and states in parts are for the step
  /// alone.
  CompileOptions compile = {};

  std::function<void(const StepReport&)> after_step = {};
  std::function<void(const EvaluationReport&)> after_evaluation_batch = {};
  std::function<void(const LossPoint&)> after_evaluation = {};  ///< of run()
  /// A checkpoint, or the state of a run that diverged, was written to this folder; of several processes by rank 0.
  std::function<void(const std::filesystem::path&)> after_save = {};
  /// Asked before every step and every batch of an evaluation; true ends run() after what is done by then is saved.
  /// Of several processes any may say so, to all.
  std::function<bool()> stop = {};
  /// What may help against divergence, for its error: "start again {}".
  std::string advice = "with a smaller learning rate, a smaller clip_norm or more warm-up";
};

/// The loop of a training run: batches, steps, evaluations, checkpoints, and going on after an end of any kind, to
/// the same bits. The step is one graph (training_step), which says what one run of it does: the schedule, clipping,
/// accumulation, loss scaling.
///
///   Trainer trainer(step, initial_values(step, g.initializers(), /*seed=*/1), {.folder = RunFolder("run")});
///   trainer.run(batches, 10'000);  // goes on where the last process ended
///
/// A run has diverged where its loss or a state is infinite or no number; then it ends with UserError
/// [train_diverged], the state is kept in run/diverged, and checkpoints stay as they are.
///
/// A step after the first copies no inputs and allocates nothing, where the sizes stay and Batches gives references:
/// outputs are filled again. What is left are the losses of the history, beyond the 65536 steps that a run() has room
/// for at first, and with compile.ranks this process's part of each batch.
///
/// With compile.ranks, each of the processes makes a Trainer of the same step, start and batches, all of them whole:
/// it takes its parts. Checkpoints hold whole tensors, written and read by rank 0, so that any mesh, or one process,
/// goes on from what another one saved; the same mesh to the same bits. What one rank throws must end all
/// (ending_all()).
class Trainer {
 public:
  /// Compiles, and goes on from the folder's checkpoint where there is one. Else `start` gives the values of
  /// parameters and states; those that options.compile.parameters has already stay as they are there. UserErrors of
  /// compile() and Parameters::set(); [train_step] for a step that updates nothing, a graph without the loss;
  /// [train_options] for numbers below 1; of a checkpoint [train_resume] where its settings are others,
  /// [safetensors_missing] where it lacks a state of the step, [argument_shape], [argument_dtype],
  /// [checkpoint_invalid]; of several processes [train_folder] for a folder of another rank than 0, [mesh_divide],
  /// and [mesh_parameters] where the evaluation divides a parameter otherwise than the step.
  Trainer(const ir::Graph& step, Tensors start, TrainerOptions options = {});
  /// The same, of values that are made as they are taken: `start` is asked for every parameter and state that has
  /// none yet, one after the other, so that a process never holds more than its parts and one whole.
  Trainer(const ir::Graph& step, const StartValue& start, TrainerOptions options = {});

  /// Trains until `last` steps are done in all, and evaluates in between. Saves every `save_every` steps and at the
  /// end. Gives whether all of them are done: false where `stop` said so. What a callback or `batches` throws ends it
  /// at once, with nothing saved since the last checkpoint. UserErrors of Executable::run(), CheckpointStore::save();
  /// [train_diverged].
  bool run(const Batches& batches, std::int64_t last);

  /// The mean loss of the first `count` batches of the evaluation, which becomes the history's of this step; nothing
  /// where `stop` said so. UserError [train_options] without an evaluation, and for a count below 1.
  std::optional<double> evaluate(std::int64_t count);
  /// The same for as many batches as the options say.
  std::optional<double> evaluate();

  /// Saves a checkpoint, where there is a folder and something happened since the last one. As run() does.
  void save();

  /// Steps done, those of earlier processes included.
  std::int64_t step() const { return step_; }
  const LossHistory& history() const { return history_; }
  /// Settings that may change and did, a line each: "going on with lr=0.0001; so far it was 0.001".
  const std::vector<std::string>& changed_settings() const { return changed_settings_; }
  /// Of several processes this one's parts.
  Parameters parameters() const { return train_.parameters(); }
  /// The parameters as wholes, on rank 0, and nothing on the others; of one process parameters() itself. All ranks
  /// call it.
  Parameters whole_parameters() const;
  /// These parameters and states as wholes, on rank 0, and nothing on the others; all ranks call it. What a process
  /// holds whole lies in parameters(), and changes as it does there. UserErrors of Parameters::get(),
  /// [mesh_disagree].
  Tensors wholes(std::span<const std::string> names) const;
  /// The compiled step, on the parameters of this run: each run of it updates them. What is trained is used by an
  /// executable of its own: compile(graph, {.mode = Mode::evaluation, .parameters = trainer.parameters()}).
  Executable& executable() { return train_; }

 private:
  Trainer(const ir::Graph& step, TrainerOptions options);
  void check_options() const;
  void check_placements() const;
  void resume();
  void after_step(std::int64_t last, double seconds);
  bool stops() const;
  std::string fault_of_states() const;
  void save_to(const CheckpointStore& (RunFolder::*store)() const) const;
  [[noreturn]] void diverged(const std::string& why) const;

  TrainerOptions options_;
  bool keeps_ = false;  ///< checkpoints: rank 0 has a folder
  Executable train_;
  TrainedTensors tensors_;
  std::optional<Executable> evaluate_;
  OwnInputs own_inputs_;
  Tensors outputs_, evaluation_outputs_;  ///< of the newest step and batch, filled again by the next
  std::vector<std::string> state_names_;
  std::vector<std::string> changed_settings_;
  LossHistory history_;
  DivergenceCheck divergence_;
  std::int64_t step_ = 0;
  bool saved_ = false;                     ///< nothing happened since the newest checkpoint
  std::optional<std::int64_t> last_good_;  ///< the step of the newest checkpoint of this run, or that it goes on from
};

}  // namespace lathe
