#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "frontend/decode/decoding.h"
#include "models/finetune/new_model/text_model_options.h"
#include "models/finetune/optimizer_settings.h"
#include "models/finetune/training_observer.h"
#include "runtime/compile.h"

namespace lathe {

/// Options of a TextTraining. Numbers out of range are errors [train_options].
struct TextTrainingOptions {
  /// The text: a file, or all source files below a folder. Exactly one must be given.
  std::filesystem::path text = {}, sources = {};
  std::string tokenizer = {};  ///< "": characters; "bpe:SIZE": learn from the text; else path of a tokenizer.json
  TextModelOptions model = {};
  std::filesystem::path output = "lathe-run";
  std::int64_t steps = 900, batch = 8;  ///< updates, and sequences per update
  /// Defaults: lr 1e-3, weight_decay 0.1, beta2 0.99.
  OptimizerSettings optimizer = {};
  std::uint64_t seed = 1;                               ///< of parameters, batches and dropout
  std::int64_t evaluate_every = 100, save_every = 200;  ///< in steps
  std::int64_t validation_batches = 64;  ///< in the validation after the last step; 0: the whole validation text
  bool fresh = false;                    ///< ignore existing checkpoints and start from scratch
  /// Target, threads, cache, processes and their shards, memory budget, tuning, and other options of the step. The
  /// run sets the sizes of the memory budget and of tuning if they are empty. With ranks but no splits, the names of
  /// the mesh axes choose them. Refused, because the run sets them: mode, parameters, share_states, reserve, sizes.
  CompileOptions compile = {};
  /// Called before every step and every validation batch; true ends the run after the completed work is saved.
  std::function<bool()> stop = {};
  TrainingObserver* observer = nullptr;  ///< may be null
  /// Advice against divergence for the error message: "start again {}".
  std::string advice = "with a smaller lr, a smaller clip or more warmup";
};

/// A text to generate with a model that was trained on text.
struct TextSampleOptions {
  std::int64_t length = 400;  ///< characters or tokens
  std::string prompt = "\n";
  Sampling sampling = {.temperature = 0.8, .top_k = 40};
};

/// Trains a new language model on a text; the library behind `lathe train`:
///
///   TextTraining training({.text = "shakespeare.txt", .output = "run", .steps = 2000});
///   const TrainingResult result = training.run();
///   std::cout << training.sample();
///
/// Writes to `output` the checkpoints and, in model/, a Hugging Face directory. Resumes from the newest valid
/// checkpoint in `output`.
///
/// With ranks, each process must make the same calls with the same options and have access to the text; the first one
/// writes. An exception on one rank must end all ranks (ending_all()).
class TextTraining {
 public:
  /// Throws UserError [train_options].
  explicit TextTraining(TextTrainingOptions options);
  ~TextTraining();
  TextTraining(TextTraining&&) noexcept;
  TextTraining& operator=(TextTraining&&) noexcept;

  /// Trains, writes the model and validates it, or ends early if `stop` returns true. Another call resumes the run.
  ///
  /// Throws UserErrors for the text, the model [train_model], [train_heads], [train_warmup], and checkpoints;
  /// [train_locked] if another process trains in `output`; [train_resume] if the checkpoint is of another model or
  /// text, or has no vocabulary; [train_diverged] if the loss or a state is not finite: the state is saved in
  /// output/diverged and checkpoints are kept. With ranks also [ranks_differ], those of shard::shard, and
  /// [mesh_divide] for a batch size that is not divisible.
  TrainingResult run();

  /// Generates a text with the model that run() has written, until it has `length` characters or tokens or `stop`
  /// returns true. Calls `piece` with each new piece of text, without the prompt, and returns all of them. Must be
  /// called after a run that was not stopped, on the first process. Throws UserError [train_options] before.
  std::string sample(const TextSampleOptions& options = {},
                     const std::function<void(std::string_view piece)>& piece = {});

 private:
  class Run;
  std::unique_ptr<Run> run_;
};

}  // namespace lathe
