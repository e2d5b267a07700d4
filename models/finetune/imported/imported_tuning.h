#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/support/dtype.h"
#include "models/finetune/optimizer_settings.h"
#include "models/finetune/training_observer.h"
#include "models/import/loss/attached_loss.h"
#include "runtime/compile.h"

namespace lathe {

/// Options of an ImportedTuning. Numbers out of range are errors [train_options].
struct ImportedTuningOptions {
  std::filesystem::path file = {};  ///< the graph and its weights: .onnx or .pt2
  DimBindings sizes = {};           ///< numbers in place of named sizes of inputs (ImportOptions::sizes)
  importing::AttachedLoss loss = {};
  std::vector<std::string> frozen = {};  ///< parts of the names of parameters that are not trained
  /// Examples: .safetensors or .npz with a tensor for each input of the graph and the target of the loss. Inputs
  /// past_key_values.* may be left out: a decoder then has no cached rows.
  std::filesystem::path data = {};
  /// Validation examples: such a file, or a share of `data` such as 0.1. At most one may be given.
  std::filesystem::path valid = {};
  double valid_share = 0;
  std::filesystem::path output = "finetuned";
  std::int64_t steps = 0;                               ///< updates; 0: from `epochs`
  double epochs = 1;                                    ///< passes over the examples; `steps` takes precedence
  std::int64_t batch = 8;                               ///< examples per step
  OptimizerSettings optimizer = {};                     ///< defaults: lr 2e-5, weight_decay 0, beta2 0.999
  DType precision = f32;                                ///< bf16 and f16: mixed precision
  std::uint64_t seed = 1;                               ///< of the order of examples and of dropout
  std::int64_t evaluate_every = 100, save_every = 200;  ///< in steps
  std::int64_t validation_batches = 64;                 ///< per validation; 0: all
  bool fresh = false;                                   ///< ignore existing checkpoints and start from scratch
  /// Target, threads, cache, memory budget and other options of the step. Refused, because the run sets them: mode,
  /// parameters, share_states, reserve, sizes; and ranks.
  CompileOptions compile = {};
  std::function<bool()> stop = {};       ///< called before every batch; true ends the run after it is saved
  TrainingObserver* observer = nullptr;  ///< may be null
  std::string advice = "with a smaller lr, a smaller clip or more warmup";  ///< against divergence
};

/// Trains the parameters of an ONNX or a .pt2 file on examples; the library behind `lathe finetune FILE`:
///
///   ImportedTuning tuning({.file = "model.onnx",
///                          .loss = importing::parse_loss("cross_entropy:logits,labels"),
///                          .data = "train.npz",
///                          .output = "tuned"});
///   tuning.run();
///
/// Writes the parameters, and the states that the graph updates such as running means, to model.safetensors in
/// `output`, by their names in the file; its subfolder training/ gets the checkpoints and metrics.jsonl. Resumes from
/// the newest valid checkpoint there, with the same bits.
class ImportedTuning {
 public:
  /// Throws UserError [train_options], and [finetune_valid] for a share that is not between 0 and 1.
  explicit ImportedTuning(ImportedTuningOptions options);
  ~ImportedTuning();
  ImportedTuning(ImportedTuning&&) noexcept;
  ImportedTuning& operator=(ImportedTuning&&) noexcept;

  /// Trains, writes the parameters and validates them, or ends early if `stop` returns true. Another call resumes the
  /// run. Throws UserErrors of import_graph(), attach_loss(), training_step() and checkpoints; [finetune_data] for
  /// examples that do not fit the graph; [finetune_valid] for fewer validation examples than a batch;
  /// [train_parameters] for trained parameters of 16 bits; [output_folder] if `output` has a model.safetensors that
  /// no such run wrote; [train_warmup], [train_locked], [train_resume], [train_diverged].
  TrainingResult run();

 private:
  class Run;
  std::unique_ptr<Run> run_;
};

}  // namespace lathe
