#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/generation/generation_options.h"
#include "frontend/generation/sequence_model.h"
#include "frontend/pretrained/lora/adapted_model.h"
#include "runtime/text/tokenizer/tokenizer.h"

namespace lathe::tools {

struct SampleSettings {
  std::vector<std::string> prompts = {};  ///< to go on with while a model is trained; none: no samples
  std::int64_t every = 100;               ///< updates
  std::int64_t tokens = 64;               ///< that are added at most
  bool chat = false;                      ///< prompts are a user's turns, rendered by the chat template
};

/// How a model goes on with some prompts while it is trained: as its generation_config.json says, with the same draws
/// each time.
class Samples {
 public:
  /// UserErrors of Tokenizer::load, load_generation_options and ChatTemplates.
  Samples(const pretrained::AdaptedModel& model, const SampleSettings& settings, std::uint64_t seed);

  /// The texts for the prompts, by the weights as they are now. UserErrors of Generation.
  std::vector<std::string> write(const pretrained::CausalLm& model, const Parameters& weights,
                                 const SequenceModelOptions& options) const;

 private:
  Tokenizer tokenizer_;
  GenerationOptions how_;
  std::vector<std::vector<SequenceModel::TokenId>> prompts_;
};

}  // namespace lathe::tools
