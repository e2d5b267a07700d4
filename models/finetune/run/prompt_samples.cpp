#include "models/finetune/run/prompt_samples.h"

#include "models/finetune/model_directory.h"
#include "models/generation/cached_lm.h"
#include "models/generation/generator.h"

namespace lathe {

PromptSamples::PromptSamples(const pretrained::AdaptedModel& model, const SampleOptions& settings, std::uint64_t seed)
    : tokenizer_(tokenizer_of(model)), how_(load_generation_options(model.text_folder, model.model.folder)) {
  how_.max_new_tokens = settings.tokens;
  how_.seed = seed;
  if (settings.chat) {
    const ChatTemplates templates = ChatTemplates::load(model.text_folder);
    for (const std::string& prompt : settings.prompts)
      prompts_.push_back(chat_tokens(templates.get(), tokenizer_, {{"user", prompt}}));
    return;
  }
  for (const std::string& prompt : settings.prompts) prompts_.push_back(prompt_tokens(tokenizer_, prompt));
}

std::vector<std::string> PromptSamples::write(const pretrained::CausalLm& model, const Parameters& weights,
                                              const SequenceModelOptions& options) const {
  CachedLm lm(model, weights, options);
  Generation generation(lm, tokenizer_, prompts_, how_);
  generation.run();
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < generation.size(); ++i) texts.push_back(generation.text(i));
  return texts;
}

}  // namespace lathe
