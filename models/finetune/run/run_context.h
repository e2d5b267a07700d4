#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "models/finetune/training_observer.h"
#include "runtime/compile.h"
#include "runtime/train/run_folder.h"
#include "runtime/train/run_settings.h"
#include "runtime/train/trainer.h"

namespace lathe {

/// The parts that all training runs share: the processes of a run, its folder and its observer.
class RunContext {
 public:
  /// Throws UserError [train_options] for options of compile() that the run sets itself. `observer` may be null.
  RunContext(const CompileOptions& compile, TrainingObserver* observer);
  RunContext(const RunContext&) = delete;
  RunContext& operator=(const RunContext&) = delete;

  /// Returns null for a single process.
  const std::shared_ptr<Ranks>& ranks() const { return compile_.ranks; }
  /// Returns whether this process reads and writes files: it is the only process, or rank 0.
  bool is_first() const { return !ranks() || ranks()->rank() == 0; }
  /// Returns the run's observer on the first process, and one that ignores all events on the others.
  TrainingObserver& observer() const { return *observer_; }

  /// Locks the folder of checkpoints, on the first process. Must come before any work that could not be saved. Throws
  /// UserErrors of RunFolder.
  void take_folder(const std::filesystem::path& folder, bool fresh);
  /// Returns the folder, which other processes do not have.
  const RunFolder& folder() const { return folder_; }
  /// Returns the checkpoint from which the run resumes; null if it starts from scratch.
  const Checkpoint* checkpoint() const;

  /// Chooses splits for several processes, if none are given, and reports the graph of the loss.
  void choose_splits(const ir::Graph& loss);
  /// Returns the options of compile(), with the chosen splits.
  const CompileOptions& compile() const { return compile_; }
  /// Returns them for the training step. Sets sizes of the memory budget, and the number of threads if processes
  /// share a host. Must be called by all processes.
  CompileOptions step_options(const DimBindings& sizes) const;
  /// Returns the sizes of dims on this process.
  DimBindings sizes_here(DimBindings sizes) const;
  /// Returns the options of a trainer that all runs have: the folder, the options of the step, and events that go to
  /// the observer as they are.
  TrainerOptions trainer_options(const CompileOptions& step, Settings fixed, Settings changeable) const;
  /// Reports the start of a run. Fills in the parts of `start` that the trainer and this object have.
  void report_start(TrainingStart start, const Trainer& trainer) const;
  /// Returns the mesh and the shards as options of the command; `alone` for one process.
  std::string sharding(const std::string& alone) const;

  /// Throws UserError [ranks_differ] if processes were started with different settings. Must be called by all
  /// processes, with equal setting names.
  void require_same(const Settings& fixed, const Settings& changeable) const;

 private:
  CompileOptions compile_;
  TrainingObserver no_observer_;
  TrainingObserver* observer_;
  RunFolder folder_;
};

}  // namespace lathe
