#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/finetune/fine_tuning.h"
#include "models/generation/generation_options.h"
#include "models/generation/sequence_model.h"
#include "models/pretrained/lora/adapted_model.h"
#include "models/text/tokenizer/tokenizer.h"

namespace lathe {

/// Generates continuations of prompts during training. Uses the settings of generation_config.json and the same
/// random draws each time.
class PromptSamples {
 public:
  /// Throws UserErrors of Tokenizer::load, load_generation_options and ChatTemplates.
  PromptSamples(const pretrained::AdaptedModel& model, const SampleOptions& settings, std::uint64_t seed);

  /// Returns the continuations of the prompts with the current weights. Throws UserErrors of Generation.
  std::vector<std::string> write(const pretrained::CausalLm& model, const Parameters& weights,
                                 const SequenceModelOptions& options) const;

 private:
  Tokenizer tokenizer_;
  GenerationOptions how_;
  std::vector<std::vector<SequenceModel::TokenId>> prompts_;
};

}  // namespace lathe
