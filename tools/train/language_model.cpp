#include "tools/train/language_model.h"

#include <fmt/core.h>

#include "frontend/models/gpt.h"
#include "frontend/models/llama.h"
#include "frontend/training.h"

namespace lathe::tools {

namespace {

/// Both graphs of a model.
template <class Model>
LanguageModel graphs_of(const Model& model, const std::string& name) {
  const Dim B("B"), T("T");
  Graph loss(name), logits(name + "_generate");
  loss.output("loss", model.loss(loss.input("tokens", i64, {B, T + 1})));
  logits.output("logits", model.logits(logits.input("tokens", i64, {B, T})));
  return {.model = model, .forward = loss.finish(), .step = {}, .generate = logits.finish()};
}

LanguageModel build(const ModelSettings& s) {
  const Dim vocab("vocab", s.vocab), d_model("d_model", s.d_model), h("h", s.heads);
  if (s.model == "llama")
    return graphs_of(models::Llama({.vocab = vocab,
                                    .d_model = d_model,
                                    .d_ff = Dim("d_ff", s.d_model * 8 / 3 / 16 * 16),
                                    .h = h,
                                    .kv_heads = Dim("kv_heads", s.heads),
                                    .head_dim = Dim("head_dim", s.d_model / s.heads),
                                    .layers = static_cast<int>(s.layers)}),
                     s.model);
  return graphs_of(models::Gpt({.vocab = vocab,
                                .context = Dim("context", s.context),
                                .d_model = d_model,
                                .h = h,
                                .layers = static_cast<int>(s.layers),
                                .dropout = s.dropout}),
                   s.model);
}

}  // namespace

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

LanguageModel build_language_model(const ModelSettings& model, const OptimizerSettings& optimizer) {
  if (model.model != "gpt" && model.model != "llama")
    throw UserError(fmt::format("there is no model {}", model.model), "train_model", "use gpt or llama");
  if (model.heads < 1 || model.d_model % model.heads != 0)
    throw UserError(fmt::format("d_model={} does not divide into {} heads", model.d_model, model.heads),
                    "train_heads", "choose d_model as a multiple of the heads");
  if (optimizer.warmup_steps() >= optimizer.steps && optimizer.steps > 1)
    throw UserError(
        fmt::format("{} steps of warm-up leave none of {} steps to train", optimizer.warmup_steps(), optimizer.steps),
        "train_warmup", "give more --steps or fewer --warmup");
  LanguageModel m = build(model);
  const AdamW adamw{.lr = optimizer.steps == 1 ? Schedule(optimizer.lr)
                                               : Schedule::warmup_cosine(optimizer.lr, optimizer.warmup_steps(),
                                                                         optimizer.steps, optimizer.lr / 10),
                    .beta1 = 0.9,
                    .beta2 = 0.99,
                    .weight_decay = optimizer.weight_decay};
  m.step = training_step(m.forward, "loss", adamw,
                         {.clip_norm = optimizer.clip, .precision = model.precision, .decayed = matrices()});
  return m;
}

}  // namespace lathe::tools
