#pragma once

#include <filesystem>
#include <string>

#include "frontend/decode/decoding.h"
#include "ir/options/lower_options.h"
#include "tools/options/division.h"
#include "tools/train/model_settings.h"

namespace lathe::tools {

struct TrainSettings {
  ModelSettings model;
  OptimizerSettings optimizer;
  std::filesystem::path text;           ///< a file; empty: use `sources`
  std::filesystem::path sources = ".";  ///< folder whose source files are the text
  std::string tokenizer;  ///< "": characters; "bpe:SIZE": learn from the text; else path of a tokenizer.json
  std::filesystem::path output = "lathe-run";
  std::int64_t batch = 8;
  std::uint64_t seed = 1;
  std::int64_t evaluate_every = 100, save_every = 200;
  std::int64_t validation_batches = 64;  ///< in the validation after the last step; 0: the whole validation text
  bool print_graph = false;              ///< print the model's IR before the first step
  std::int64_t sample = 400;             ///< number of characters or tokens to sample at the end
  std::string prompt = "\n";
  Sampling sampling = {.temperature = 0.8, .top_k = 40};
  int threads = 0;
  LowerOptions lower;
  std::string target = "host";
  std::string memory_budget;    ///< of a training step, in the format of --memory-budget; empty: none
  double tune = 0;              ///< seconds to tune a training step (--tune); 0: no tuning
  bool fresh = false;           ///< ignore existing checkpoints and start from scratch
  std::filesystem::path cache;  ///< cache of compiled code; empty: none
  Division division;            ///< distribution over processes
  ProcessOptions processes;
};

/// Trains a language model on text with compiled code. Prints a compile summary and live progress, writes
/// checkpoints, the loss curve (loss.svg) and the model as a Hugging Face directory (model/), then validates and
/// prints a sample. Resumes from the newest valid checkpoint in `output` and prints the settings that have changed.
/// After SIGINT, SIGTERM or SIGHUP, it completes the current step, saves a checkpoint and throws Stopped. It does the
/// same if writing to standard output fails, but throws that error. Throws UserErrors for the text, the settings and
/// checkpoints; [train_locked] if another process trains in `output`; [train_resume] if the checkpoint is of another
/// model or text, or has no vocabulary; [train_diverged] if the loss or a state is not finite: the state is saved in
/// output/diverged and checkpoints are kept.
///
/// With a mesh, each process must call it with the same settings and have access to the text. The first process
/// prints and writes. Throws also [mesh_processes], [mpi_plugin], [mpi_failed], [ranks_differ], those of
/// shard::shard, and [mesh_divide] for a batch size that is not divisible. An error on one process ends all.
void train(const TrainSettings& settings);

}  // namespace lathe::tools
