#pragma once

#include <filesystem>
#include <string>

#include "frontend/decode/decoding.h"
#include "passes/lowering/lower_options.h"
#include "tools/options/division.h"
#include "tools/train/model_settings.h"

namespace lathe::tools {

struct TrainSettings {
  ModelSettings model;
  OptimizerSettings optimizer;
  std::filesystem::path text;           ///< a file; empty: `sources`
  std::filesystem::path sources = ".";  ///< a folder whose source files are the text
  std::string tokenizer;  ///< "": characters; "bpe:SIZE": learned from the text; else a tokenizer.json or its folder
  std::filesystem::path output = "lathe-run";
  std::int64_t batch = 8;
  std::uint64_t seed = 1;
  std::int64_t evaluate_every = 100, save_every = 200;
  std::int64_t validation_batches = 64;  ///< of the validation after the last step; 0: the whole validation text
  bool print_graph = false;              ///< the model's IR before the first step
  std::int64_t sample = 400;             ///< characters, or tokens, to sample at the end
  std::string prompt = "\n";
  Sampling sampling = {.temperature = 0.8, .top_k = 40};
  int threads = 0;
  LowerOptions lower;
  std::string target = "host";
  std::string memory_budget;    ///< of a training step, as --memory-budget has it; empty: none
  double tune = 0;              ///< of a training step: the seconds of --tune; 0: not
  bool fresh = false;           ///< start anew even if there is a checkpoint
  std::filesystem::path cache;  ///< compiled code; empty: none
  Division division;            ///< over processes
  ProcessOptions processes;
};

/// Trains a language model on text by compiled code: prints a compile summary, then live progress; writes
/// checkpoints, the loss curve (loss.svg) and the model as a Hugging Face directory (model/), then validates and
/// prints a sample. Resumes from the newest good checkpoint in `output`, and prints the settings that changed since.
/// SIGINT, SIGTERM and SIGHUP end it after the present step, with a checkpoint: then it throws Stopped. Where
/// standard output is lost it ends so too, with that error. UserErrors: those of reading the text, of the settings
/// and of checkpoints; [train_locked] where another process trains in `output`; [train_resume] where the checkpoint
/// is of another model or text, or has no vocabulary; [train_diverged] where the loss or a state is not finite: that
/// state is kept in output/diverged, and checkpoints stay as they are.
///
/// With a mesh, each of its processes calls it with the same settings, and must see the text; the first of them
/// prints and writes. [mesh_processes], [mpi_plugin], [mpi_failed], [ranks_differ], those of shard::shard, and
/// [mesh_divide] for a batch that does not divide. An error on one process ends all.
void train(const TrainSettings& settings);

}  // namespace lathe::tools
