#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "ir/support/dtype.h"
#include "tools/finetune/text_samples.h"
#include "tools/options/division.h"
#include "tools/train/model_settings.h"

namespace lathe::tools {

struct FineTuneSettings {
  std::filesystem::path model;                ///< a Hugging Face directory, or an adapter's
  std::filesystem::path adapter = {};         ///< an adapter on the model, which is trained further
  std::filesystem::path data, text, sources;  ///< JSONL; or a text, or source files: ExampleSettings
  std::filesystem::path output = "finetuned";
  std::optional<std::string> lora = {};  ///< what --lora says; nothing: all weights are trained
  std::string valid;                     ///< a JSONL file, or a share of the data; empty: no validation
  OptimizerSettings optimizer = {.lr = 0, .weight_decay = 0, .steps = 0};  ///< rate 0: by what is trained
  std::string schedule = "cosine";
  double epochs = 1;  ///< where no steps are given
  std::int64_t batch = 8, accumulate = 1, context = 512;
  bool pack = false;
  DType precision = f32;
  std::uint64_t seed = 1;
  std::int64_t evaluate_every = 100, save_every = 200;  ///< updates
  std::int64_t validation_batches = 64;                 ///< of each validation; 0: all
  SampleSettings samples = {};
  int threads = 0;
  std::string target = "host";
  std::string memory_budget;
  bool fresh = false;
  std::filesystem::path cache;
  Division division = {};  ///< over processes
  ProcessOptions processes = {};
};

/// Trains a model, or the adapter that is on it, on examples of its directory's own tokenizer and chat template.
/// Writes to `output` a directory as the model's is, or an adapter as PEFT has it, and below it in training/
/// checkpoints, metrics.jsonl and loss.svg. Goes on from the newest good checkpoint there, to the same bits.
/// UserErrors: those of the model, the data and the checkpoints; [finetune_context] for more tokens a row than the
/// model has positions, [output_folder] for the model's own directory, [finetune_valid], [lora_option]; as
/// tools::train() where it is stopped.
///
/// With a mesh, each of its processes calls it with the same settings, and must see the model and the data; the first
/// of them prints, writes and gives the samples, for which it gathers what is trained. Errors as those of
/// tools::train().
void fine_tune(const FineTuneSettings& settings);

}  // namespace lathe::tools
