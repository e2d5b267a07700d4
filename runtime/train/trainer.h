#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/compile.h"
#include "runtime/train/batches.h"
#include "runtime/train/divergence.h"
#include "runtime/train/extra_step.h"
#include "runtime/train/loss_history.h"
#include "runtime/train/run_folder.h"
#include "runtime/train/run_settings.h"
#include "runtime/train/step_report.h"
#include "runtime/train/trained_tensors.h"

namespace lathe {

/// Returns the initial value of a parameter or state as a whole tensor.
using StartValue = std::function<HostTensor(const std::string& name)>;

/// An evaluation on held-out data.
struct Evaluation {
  ir::Graph graph;           ///< has the loss as an output; compiled with Mode::evaluation
  Batches batches;           ///< must have equally many items, because the losses are averaged
  std::int64_t count = 8;    ///< batches per evaluation
  std::int64_t every = 100;  ///< in steps
  DimsOfStep dims = {};      ///< sizes of a batch that its inputs do not determine
};

struct TrainerOptions {
  std::optional<Evaluation> evaluation = {};
  /// Folder for checkpoints. Without it, nothing is saved and every run starts from scratch. With several processes,
  /// only rank 0 has it.
  RunFolder folder = {};
  std::int64_t save_every = 200;  ///< in steps
  /// Whether checkpoints include parameters that no step changes. If false, compile.parameters must provide them when
  /// the run resumes, so that the checkpoint of an adapter does not contain its base model.
  bool save_constants = true;
  RunSettings settings = {};
  std::string loss = "loss";  ///< name of the loss among the outputs of the step and the evaluation
  DimsOfStep dims = {};       ///< sizes of a step that its inputs do not determine
  /// Names of further scalar outputs of the step, such as the parts of the loss, that reports list and that must be
  /// finite.
  std::vector<std::string> reported_losses = {};
  /// Further steps over the same parameters. Checkpoints include their states. A loss of one that is infinite or NaN
  /// ends the run, like that of the step.
  std::vector<ExtraStep> extra_steps = {};
  /// Options for both graphs. Tuning, the memory budget and known sizes apply only to the step.
  CompileOptions compile = {};

  std::function<void(const StepReport&)> after_step = {};
  std::function<void(const EvaluationReport&)> after_evaluation_batch = {};
  std::function<void(const LossPoint&)> after_evaluation = {};  ///< called only by run()
  /// Called after a checkpoint, or the state of a diverged run, was written to this folder; with several processes,
  /// on rank 0.
  std::function<void(const std::filesystem::path&)> after_save = {};
  /// Called before every step and every evaluation batch. If it returns true, run() saves the completed work and
  /// returns. With several processes, true on any of them stops all.
  std::function<bool()> stop = {};
  /// Whether the start values are a function that stays valid during run(). A run that diverges before its first
  /// checkpoint calls it again, to repeat the steps from the start.
  bool can_restart = false;
  /// Called before a run that diverged repeats steps first .. last, counted from 1, to find the op that made the
  /// first result that is not finite.
  std::function<void(std::int64_t first, std::int64_t last)> before_replay = {};
  /// Advice against divergence for the error message: "start again {}".
  std::string advice = "with a smaller learning rate, a smaller clip_norm or more warm-up";
};

/// The loop of a training run: batches, steps, evaluations, checkpoints. A run that ended for any reason resumes with
/// the same bits. The step is one graph (training_step) that includes the schedule, clipping, accumulation and loss
/// scaling.
///
///   Trainer trainer(step, initial_values(step, g.initializers(), /*seed=*/1), {.folder = RunFolder("run")});
///   trainer.run(batches, 10'000);  // resumes where the last process ended
///
/// A run has diverged if its loss or a state is infinite or NaN. It then ends with UserError [train_diverged]; the
/// state is saved in run/diverged and the checkpoints are kept. The error names the op that made the first NaN or
/// infinity, its line and the ranges of its operands: the steps since the latest checkpoint (or since the start, see
/// TrainerOptions::can_restart) are repeated with find_nan, with the same bits. This needs one process and no extra
/// steps; otherwise the error advises to resume with find_nan.
///
/// After the first step, a step copies no inputs and allocates nothing, if the sizes do not change and Batches
/// returns references. Output memory is reused. Exceptions are the history beyond the 65536 losses that run()
/// reserves and, with compile.ranks, this process's part of each batch.
///
/// With compile.ranks, each process creates a Trainer with the same step, start values and batches, all of them
/// whole, and uses its parts. Checkpoints contain whole tensors, written and read by rank 0, so that any mesh or a
/// single process can resume from them. The same mesh resumes with the same bits. An exception on one rank must end
/// all ranks (ending_all()).
class Trainer {
 public:
  /// Compiles the step and resumes from the folder's checkpoint if there is one. Otherwise, `start` contains the
  /// values of parameters and states; those already in options.compile.parameters keep their values. Throws
  /// UserErrors of compile() and Parameters::set(); [train_step] for a step that updates nothing or a graph without
  /// the loss; [train_options] for numbers below 1 and for names of extra steps that are empty or repeated. Errors of
  /// a checkpoint: [train_resume] for different settings, [safetensors_missing] for a missing state,
  /// [argument_shape], [argument_dtype], [checkpoint_invalid]. Errors with several processes: [train_folder] for a
  /// folder on a rank other than 0, [mesh_divide], and [mesh_parameters] if the evaluation or an extra step
  /// shards a parameter differently from the step.
  Trainer(const ir::Graph& step, Tensors start, TrainerOptions options = {});
  /// Same, but computes start values on demand. `start` is called for one parameter or state without a value at a
  /// time, so that a process never holds more than its parts and one whole tensor.
  Trainer(const ir::Graph& step, const StartValue& start, TrainerOptions options = {});

  /// Trains until `last` steps are completed in total, with evaluations in between. Saves every `save_every` steps
  /// and at the end. Returns whether all steps were completed; false if `stop` returned true. An exception of a
  /// callback or of `batches` ends the run at once, without saving. Throws UserErrors of Executable::run(),
  /// CheckpointStore::save(); [train_diverged].
  bool run(const Batches& batches, std::int64_t last);

  /// Returns the mean loss of the first `count` batches of the evaluation and adds it to the history; nullopt if
  /// `stop` returned true. Throws UserError [train_options] without an evaluation and for a count below 1.
  std::optional<double> evaluate(std::int64_t count);
  /// Evaluates Evaluation::count batches.
  std::optional<double> evaluate();

  /// Saves a checkpoint if there is a folder and something changed since the last one. run() calls it.
  void save();

  /// Returns the number of completed steps, including those of earlier processes.
  std::int64_t step() const { return step_; }
  const LossHistory& history() const { return history_; }
  /// Returns a line for each changeable setting that changed: "resuming with lr=0.0001, previously 0.001".
  const std::vector<std::string>& changed_settings() const { return changed_settings_; }
  /// Returns the parameters; with several processes, this process's parts.
  Parameters parameters() const { return train_.parameters(); }
  /// Returns the whole parameters on rank 0 and nothing on other ranks; with one process, parameters(). Must be
  /// called by all ranks.
  Parameters whole_parameters() const;
  /// Returns these parameters and states as whole tensors on rank 0, and nothing on other ranks. Must be called by
  /// all ranks. Tensors that a process holds whole share the memory of parameters() and change with it. Throws
  /// UserErrors of Parameters::get(), [mesh_disagree].
  Tensors wholes(std::span<const std::string> names) const;
  /// Returns the compiled step. Each run of it updates the parameters of this run. To use the trained model, compile
  /// another executable: compile(graph, {.mode = Mode::evaluation, .parameters = trainer.parameters()}).
  Executable& executable() { return train_; }

 private:
  Trainer(const ir::Graph& step, TrainerOptions options);
  void check_options() const;
  void check_placements(const Executable& other, const std::string& what, const std::string& hint) const;
  void resume();
  /// An extra step, and its latest results.
  struct Extra {
    ExtraStep options;
    Executable executable;
    OwnInputs inputs = {};
    Tensors outputs = {};
    DivergenceCheck divergence = {};
  };
  void add_extra_steps();
  void list_states();
  void run_step(const Batches& batches, std::int64_t last);
  void run_finite(Executable& executable, const InputRefs& batch, Tensors& outputs, const DimsOfStep& dims,
                  std::int64_t number) const;
  double run_extra_steps();
  void check_loss_of(DivergenceCheck& check, const std::string& name, double loss, const Tensors& outputs) const;
  void after_step(std::int64_t last, double seconds);
  /// Returns executable 0, that of the step, or one of an extra step.
  const Executable& executable(std::size_t i) const { return i == 0 ? train_ : extras_[i - 1].executable; }
  /// Returns the executable that a state belongs to: the first one that has it.
  const Executable& owner(std::string_view state) const;
  Tensors whole_states() const;
  bool stops() const;
  std::string fault_of_states() const;
  void save_to(const CheckpointStore& (RunFolder::*store)() const) const;
  [[noreturn]] void diverged(const std::string& why, const std::string& details = {}) const;
  bool can_replay() const;
  bool restore() const;
  std::string replayed_fault() const;

  TrainerOptions options_;
  ir::Graph graph_;                   ///< of the step
  StartValue start_;                  ///< empty unless can_restart
  const Batches* batches_ = nullptr;  ///< of run()
  bool keeps_ = false;                ///< this run writes checkpoints: rank 0 has a folder
  Executable train_;
  TrainedTensors tensors_;
  std::vector<Extra> extras_;
  std::optional<Executable> evaluate_;
  OwnInputs own_inputs_;
  Tensors outputs_, evaluation_outputs_;               ///< of the latest step and batch; reused by the next
  std::vector<std::vector<std::string>> state_names_;  ///< saved states by executable, each once
  std::vector<NamedLoss> losses_;
  std::vector<DivergenceCheck> loss_checks_;  ///< of reported_losses
  std::vector<std::string> changed_settings_;
  LossHistory history_;
  DivergenceCheck divergence_;
  std::int64_t step_ = 0;
  bool saved_ = false;  ///< nothing has changed since the latest checkpoint
  std::optional<std::int64_t>
      last_good_;  ///< step of the latest checkpoint of this run or of the one it resumed from
};

}  // namespace lathe
