#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/finetune/fine_tuning.h"
#include "models/finetune/model_directory.h"
#include "models/finetune/run/averaged_weights.h"
#include "models/pretrained/lora/adapted_model.h"
#include "runtime/train/trainer.h"

namespace lathe {

/// The model of a fine-tuning run: a directory that is read, trained, and written to another one.
class TunedModel {
 public:
  /// Finds the directories. Throws UserErrors of find_adapted(), [output_folder], [lora_option].
  explicit TunedModel(const FineTuneOptions& options);

  /// Reads the model, and an existing adapter. Throws UserErrors of load_adapted().
  void load();
  /// Adds a new adapter, if the options have one, and stores the trained parameters in at least f32. Throws
  /// UserErrors of add_lora().
  void prepare_to_train();

  /// Returns the directory that the weights are read from.
  const std::filesystem::path& folder() const { return folders_.model; }
  const pretrained::AdaptedModel& loaded() const { return *loaded_; }
  const pretrained::CausalLm& graph() const { return *loaded_->model.model; }
  bool has_adapter() const { return loaded_->lora.has_value(); }

  /// Return the numbers of all and of trained parameters.
  std::int64_t parameters() const;
  std::int64_t trained_parameters() const;

  /// Hashes what determines the meaning of the states: the configuration of the model, and of its adapter.
  std::string config_hash() const;
  std::string adapter_text() const;
  /// Hashes names, types and the first 4 KiB of each weight. Reading whole mapped files would be too slow.
  std::string weights_digest() const;

  /// Returns the start value of a parameter or state of the step. Weights that keep their dtype stay in the mapped
  /// model files.
  HostTensor start_of(const ir::Graph& step, const std::string& name, std::uint64_t seed) const;
  /// Returns all current weights on the first process, trained ones as `averages` has them. Must be called by all
  /// processes.
  Parameters whole_weights(const Trainer& trainer, const AveragedWeights& averages) const;

  /// Checks that write() can write to the output folder. Throws UserErrors of FolderSave::check().
  void check_output_folder() const;
  /// Writes the model, or its adapter, with these weights.
  void write(Parameters weights);

 private:
  TextSources texts() const { return text_sources(folders_.model, loaded_->text_folder); }

  std::filesystem::path output_;
  std::optional<pretrained::LoraConfig> lora_;
  std::uint64_t seed_;
  pretrained::AdaptedFolders folders_;
  std::optional<pretrained::AdaptedModel> loaded_;
  std::vector<std::string> trained_;  ///< names of the trained parameters
};

}  // namespace lathe
