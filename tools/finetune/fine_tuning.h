#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "ir/support/dtype.h"
#include "models/finetune/new_model/text_model.h"
#include "models/finetune/text_samples.h"
#include "tools/options/division.h"

namespace lathe::tools {

struct FineTuneSettings {
  std::filesystem::path model;                ///< Hugging Face directory of a model or an adapter
  std::filesystem::path adapter = {};         ///< an adapter of the model to train further
  std::filesystem::path data, text, sources;  ///< JSONL, text, or source files: see ExampleSettings
  std::filesystem::path output = "finetuned";
  std::optional<std::string> lora = {};  ///< value of --lora; nullopt: train all weights
  std::string valid;                     ///< a JSONL file, or a fraction of the data; empty: no validation
  OptimizerSettings optimizer = {.lr = 0, .weight_decay = 0, .steps = 0};  ///< rate 0: chosen by what is trained
  std::string schedule = "cosine";
  double epochs = 1;  ///< used if no number of steps is given
  std::int64_t batch = 8, accumulate = 1, context = 512;
  bool pack = false;
  DType precision = f32;
  std::uint64_t seed = 1;
  std::int64_t evaluate_every = 100, save_every = 200;  ///< in updates
  std::int64_t validation_batches = 64;                 ///< per validation; 0: all
  SampleSettings samples = {};
  int threads = 0;
  std::string target = "host";
  std::string memory_budget;
  bool fresh = false;
  std::filesystem::path cache;
  Division division = {};  ///< distribution over processes
  ProcessOptions processes = {};
};

/// Trains a model, or its adapter, on examples in the format of its tokenizer and chat template. Writes to `output` a
/// model directory, or an adapter in PEFT's format, and to its subfolder training/ the checkpoints, metrics.jsonl and
/// loss.svg. Resumes from the newest valid checkpoint there, with the same bits. Throws UserErrors of the model, the
/// data and the checkpoints; [finetune_context] if rows have more tokens than the model has positions,
/// [output_folder] for the model's own directory, [finetune_valid], [lora_option]; like tools::train() if it is
/// stopped.
///
/// With a mesh, each process must call it with the same settings and have access to the model and the data. The first
/// process prints, writes and generates samples, for which it gathers the trained weights. Errors are those of
/// tools::train().
void fine_tune(const FineTuneSettings& settings);

}  // namespace lathe::tools
