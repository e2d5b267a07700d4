#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <set>
#include <string>

#include "frontend/train/training.h"
#include "models/finetune/optimizer_settings.h"

namespace lathe::tools {

/// Options of the training step that a command writes as a graph. As in other training commands, weight decay is for
/// matrices.
class WrittenStep {
 public:
  /// Adds the options of an optimizer and of a schedule, --total-steps and --no-grad-norm. The command must outlive
  /// this object, which must not move.
  void add_to(CLI::App& command);
  /// Returns the names of the options.
  const std::set<std::string>& names() const { return names_; }

  struct Built {
    Optimizer optimizer;
    TrainingOptions options;
  };
  /// Returns the optimizer and its options. Clipping and weight decay that are not given are those of
  /// `lathe finetune` if `as_finetune`; otherwise there is none, and AdamW's own. The rate is constant without
  /// --total-steps. Throws UserError [train_options], [train_warmup], and [usage] for a schedule without
  /// --total-steps.
  Built build(bool as_finetune, DType precision) const;

 private:
  OptimizerSettings settings(bool as_finetune) const;

  OptimizerSettings optimizer_;
  std::int64_t total_steps_ = 1;
  bool without_norm_ = false;
  std::set<std::string> names_;
  const CLI::App* command_ = nullptr;
};

}  // namespace lathe::tools
