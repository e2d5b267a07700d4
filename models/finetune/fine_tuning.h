#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/support/dtype.h"
#include "models/finetune/optimizer_settings.h"
#include "models/finetune/training_observer.h"
#include "models/pretrained/lora/lora_config.h"
#include "runtime/compile.h"

namespace lathe {

/// Texts that are generated during training.
struct SampleOptions {
  std::vector<std::string> prompts = {};  ///< none: no samples
  std::int64_t every = 100;               ///< in steps
  std::int64_t tokens = 64;               ///< maximum number of generated tokens
  bool chat = false;                      ///< prompts are user messages, rendered by the chat template
};

/// Options of a FineTuning. Numbers out of range are errors [train_options].
struct FineTuneOptions {
  std::filesystem::path model = {};    ///< Hugging Face directory of a model or an adapter
  std::filesystem::path adapter = {};  ///< an adapter of the model to train further
  /// The training data: JSONL (read_examples()), a text, or all source files below a folder. Exactly one must be
  /// given.
  std::filesystem::path data = {}, text = {}, sources = {};
  /// The validation data: a JSONL file, or a share of the training data such as 0.1. At most one may be given.
  std::filesystem::path valid = {};
  double valid_share = 0;
  std::filesystem::path output = "finetuned";
  std::optional<pretrained::LoraConfig> lora = {};  ///< a new adapter to train; nullopt: train all weights
  std::int64_t steps = 0;                           ///< updates; 0: from `epochs`
  double epochs = 1;                                ///< passes over the data; `steps` takes precedence
  std::int64_t batch = 8;                           ///< rows per batch
  std::int64_t accumulate = 1;                      ///< batches per update
  std::int64_t context = 512;                       ///< maximum tokens per row
  bool pack = false;  ///< pack several examples into a row; they do not attend to each other
  /// Defaults: lr 2e-5, or 2e-4 for an adapter; weight_decay 0, beta2 0.999.
  OptimizerSettings optimizer = {};
  DType precision = f32;   ///< bf16 and f16: mixed precision
  std::uint64_t seed = 1;  ///< of the order of examples, of the adapter's initial values and of dropout
  std::int64_t evaluate_every = 100, save_every = 200;  ///< in steps
  std::int64_t validation_batches = 64;                 ///< per validation; 0: all
  SampleOptions samples = {};
  bool fresh = false;  ///< ignore existing checkpoints and start from scratch
  /// Target, threads, cache, processes and their shards, memory budget, tuning, and other options of the step. The
  /// run sets the sizes of the memory budget and of tuning if they are empty. With ranks but no splits, the names of
  /// the mesh axes choose them. Refused, because the run sets them: mode, parameters, share_states, reserve, sizes.
  CompileOptions compile = {};
  /// Called before every batch; true ends the run after the completed work is saved.
  std::function<bool()> stop = {};
  TrainingObserver* observer = nullptr;  ///< may be null
  /// Advice against divergence for the error message: "start again {}".
  std::string advice = "with a smaller lr, a smaller clip or more warmup";
};

/// Trains a pretrained decoder-only model, or a LoRA adapter on it, on examples in the format of its tokenizer and
/// chat template; the library behind `lathe finetune`:
///
///   FineTuning tuning({.model = "Qwen3-0.6B",
///                      .data = "chats.jsonl",
///                      .output = "adapter",
///                      .lora = pretrained::LoraConfig{.r = 16, .alpha = 32}});
///   const TrainingResult result = tuning.run();
///   Generator generator = Generator::load("adapter");
///
/// Writes to `output` a model directory, or an adapter in PEFT's format, and to its subfolder training/ the
/// checkpoints and metrics.jsonl. Resumes from the newest valid checkpoint there, with the same bits. A step is an
/// update of `accumulate` batches.
///
/// With ranks, each process must make the same calls with the same options and have access to the model and the data.
/// The first process writes, and generates samples, for which it gathers the trained weights. An exception on one
/// rank must end all ranks (ending_all()).
class FineTuning {
 public:
  /// Throws UserError [train_options], and [finetune_valid] for a share that is not between 0 and 1.
  explicit FineTuning(FineTuneOptions options);
  ~FineTuning();
  FineTuning(FineTuning&&) noexcept;
  FineTuning& operator=(FineTuning&&) noexcept;

  /// Trains, writes the model or adapter and validates it, or ends early if `stop` returns true. Another call resumes
  /// the run.
  ///
  /// Throws UserErrors of load_adapted(), read_examples(), add_lora() and checkpoints; [finetune_context] if rows
  /// have more tokens than the model has positions; [output_folder] for the model's own directory; [finetune_valid];
  /// [lora_option] for `lora` on an adapter; [train_warmup], [train_locked], [train_resume], [train_diverged],
  /// [ranks_differ] as TextTraining.
  TrainingResult run();

 private:
  class Run;
  std::unique_ptr<Run> run_;
};

}  // namespace lathe
