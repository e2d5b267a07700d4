#include "models/finetune/new_model/text_model.h"

#include <fmt/core.h>

#include "frontend/models/gpt.h"
#include "frontend/models/llama.h"
#include "frontend/train/training.h"
#include "ir/support/error.h"
#include "models/finetune/run/run_checks.h"

namespace lathe {

namespace {

/// Returns both graphs of a model.
template <class Model>
TextModel graphs_of(const Model& model, const std::string& name) {
  const Dim B("B"), T("T");
  Graph loss(name), logits(name + "_generate");
  loss.output("loss", model.loss(loss.input("tokens", i64, {B, T + 1})));
  logits.output("logits", model.logits(logits.input("tokens", i64, {B, T})));
  return {.model = model, .forward = loss.finish(), .step = {}, .generate = logits.finish()};
}

models::Llama llama_of(const TextModelSettings& s) {
  return models::Llama({.vocab = Dim("vocab", s.vocab),
                        .d_model = Dim("d_model", s.d_model),
                        .d_ff = Dim("d_ff", feed_forward_size(s)),
                        .h = Dim("h", s.heads),
                        .kv_heads = Dim("kv_heads", s.heads),
                        .head_dim = Dim("head_dim", s.d_model / s.heads),
                        .layers = static_cast<int>(s.layers)});
}

models::Gpt gpt_of(const TextModelSettings& s) {
  return models::Gpt({.vocab = Dim("vocab", s.vocab),
                      .context = Dim("context", s.context),
                      .d_model = Dim("d_model", s.d_model),
                      .h = Dim("h", s.heads),
                      .layers = static_cast<int>(s.layers),
                      .dropout = s.dropout});
}

TextModel build(const TextModelSettings& s) {
  return s.kind == "llama" ? graphs_of(llama_of(s), s.kind) : graphs_of(gpt_of(s), s.kind);
}

}  // namespace

std::int64_t feed_forward_size(const TextModelSettings& s) { return s.d_model * 8 / 3 / 16 * 16; }

nn::Module text_modules(const TextModelSettings& s) {
  return s.kind == "llama" ? nn::Module(llama_of(s)) : nn::Module(gpt_of(s));
}

Settings TextModelSettings::to_strings() const {
  return {{"model", kind},
          {"layers", fmt::format("{}", layers)},
          {"d_model", fmt::format("{}", d_model)},
          {"heads", fmt::format("{}", heads)},
          {"context", fmt::format("{}", context)},
          {"vocab", fmt::format("{}", vocab)},
          {"dropout", fmt::format("{}", dropout)},
          {"precision", std::string(name(precision))}};
}

TextModel build_text_model(const TextModelSettings& model, const OptimizerSettings& optimizer, std::int64_t steps) {
  if (model.kind != "gpt" && model.kind != "llama")
    throw UserError(fmt::format("unknown model {}", model.kind), "train_model", "use gpt or llama");
  if (model.kind != "gpt" && model.dropout != 0)
    throw UserError(fmt::format("dropout is {}, but the model {} has none", model.dropout, model.kind), "train_model",
                    "leave out dropout, or use gpt");
  require_at_least("layers", model.layers, 1);
  if (model.heads < 1 || model.d_model % model.heads != 0)
    throw UserError(fmt::format("d_model={} is not divisible by {} heads", model.d_model, model.heads), "train_heads",
                    "make d_model a multiple of heads");
  auto [rule, groups] = optimizer.build(steps);
  TextModel m = build(model);
  m.step = training_step(m.forward, "loss", rule,
                         {.clip_norm = optimizer.clip,
                          .precision = model.precision,
                          .decayed = matrices(),
                          .groups = std::move(groups)});
  return m;
}

}  // namespace lathe
