#include "models/finetune/new_model/text_model.h"

#include <fmt/core.h>

#include "frontend/models/gpt.h"
#include "frontend/models/llama.h"
#include "frontend/train/training.h"

namespace lathe {

namespace {

/// Returns both graphs of a model.
template <class Model>
LanguageModel graphs_of(const Model& model, const std::string& name) {
  const Dim B("B"), T("T");
  Graph loss(name), logits(name + "_generate");
  loss.output("loss", model.loss(loss.input("tokens", i64, {B, T + 1})));
  logits.output("logits", model.logits(logits.input("tokens", i64, {B, T})));
  return {.model = model, .forward = loss.finish(), .step = {}, .generate = logits.finish()};
}

models::Llama llama_of(const ModelSettings& s) {
  return models::Llama({.vocab = Dim("vocab", s.vocab),
                        .d_model = Dim("d_model", s.d_model),
                        .d_ff = Dim("d_ff", feed_forward_size(s)),
                        .h = Dim("h", s.heads),
                        .kv_heads = Dim("kv_heads", s.heads),
                        .head_dim = Dim("head_dim", s.d_model / s.heads),
                        .layers = static_cast<int>(s.layers)});
}

models::Gpt gpt_of(const ModelSettings& s) {
  return models::Gpt({.vocab = Dim("vocab", s.vocab),
                      .context = Dim("context", s.context),
                      .d_model = Dim("d_model", s.d_model),
                      .h = Dim("h", s.heads),
                      .layers = static_cast<int>(s.layers),
                      .dropout = s.dropout});
}

LanguageModel build(const ModelSettings& s) {
  return s.model == "llama" ? graphs_of(llama_of(s), s.model) : graphs_of(gpt_of(s), s.model);
}

}  // namespace

std::int64_t feed_forward_size(const ModelSettings& s) { return s.d_model * 8 / 3 / 16 * 16; }

nn::Module build_model(const ModelSettings& s) {
  return s.model == "llama" ? nn::Module(llama_of(s)) : nn::Module(gpt_of(s));
}

std::map<std::string, std::string> ModelSettings::to_strings() const {
  return {{"model", model},
          {"layers", fmt::format("{}", layers)},
          {"d_model", fmt::format("{}", d_model)},
          {"heads", fmt::format("{}", heads)},
          {"context", fmt::format("{}", context)},
          {"vocab", fmt::format("{}", vocab)},
          {"dropout", fmt::format("{}", dropout)},
          {"precision", std::string(name(precision))}};
}

std::map<std::string, std::string> OptimizerSettings::to_strings() const {
  return {{"lr", fmt::format("{}", lr)},
          {"weight_decay", fmt::format("{}", weight_decay)},
          {"clip", fmt::format("{}", clip)},
          {"steps", fmt::format("{}", steps)},
          {"warmup", fmt::format("{}", warmup)}};
}

Schedule OptimizerSettings::schedule(double floor) const {
  if (steps == 1) return lr;
  if (warmup_steps() >= steps)
    throw UserError(fmt::format("{} warmup steps leave none of the {} training steps", warmup_steps(), steps),
                    "train_warmup", "give more --steps or a smaller --warmup");
  return Schedule::warmup_cosine({.peak = lr, .warmup = warmup_steps(), .total = steps, .floor = floor});
}

LanguageModel build_language_model(const ModelSettings& model, const OptimizerSettings& optimizer) {
  if (model.model != "gpt" && model.model != "llama")
    throw UserError(fmt::format("unknown model {}", model.model), "train_model", "use gpt or llama");
  if (model.heads < 1 || model.d_model % model.heads != 0)
    throw UserError(fmt::format("d_model={} is not divisible by {} heads", model.d_model, model.heads), "train_heads",
                    "make --d-model a multiple of --heads");
  const Schedule rate = optimizer.schedule(optimizer.lr / 10);
  LanguageModel m = build(model);
  const AdamW adamw{.lr = rate, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = optimizer.weight_decay};
  m.step = training_step(m.forward, "loss", adamw,
                         {.clip_norm = optimizer.clip, .precision = model.precision, .decayed = matrices()});
  return m;
}

}  // namespace lathe
