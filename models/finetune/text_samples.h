#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/generation/generation_options.h"
#include "models/generation/sequence_model.h"
#include "models/pretrained/lora/adapted_model.h"
#include "models/text/tokenizer/tokenizer.h"

namespace lathe {

struct SampleSettings {
  std::vector<std::string> prompts = {};  ///< prompts for samples during training; none: no samples
  std::int64_t every = 100;               ///< in updates
  std::int64_t tokens = 64;               ///< maximum number of generated tokens
  bool chat = false;                      ///< prompts are user messages, rendered by the chat template
};

/// Generates continuations of prompts during training. Uses the settings of generation_config.json and the same
/// random draws each time.
class Samples {
 public:
  /// Throws UserErrors of Tokenizer::load, load_generation_options and ChatTemplates.
  Samples(const pretrained::AdaptedModel& model, const SampleSettings& settings, std::uint64_t seed);

  /// Returns the continuations of the prompts with the current weights. Throws UserErrors of Generation.
  std::vector<std::string> write(const pretrained::CausalLm& model, const Parameters& weights,
                                 const SequenceModelOptions& options) const;

 private:
  Tokenizer tokenizer_;
  GenerationOptions how_;
  std::vector<std::vector<SequenceModel::TokenId>> prompts_;
};

}  // namespace lathe
