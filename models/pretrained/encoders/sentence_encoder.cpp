#include "models/pretrained/encoders/sentence_encoder.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "frontend/ops/ops.h"
#include "ir/support/error.h"
#include "ir/support/nearest.h"
#include "runtime/files/file_io.h"

namespace lathe::pretrained {

namespace {

/// The states of a batch of sentences, x [B, T, hidden], with present [B, T, 1]: 1 for tokens, 0 for padding.
struct Tokens {
  Tensor x, present;

  Tensor sum() const { return (x * present).sum(1); }  // [B, hidden]
  Tensor count() const { return present.sum(1); }      // [B, 1]
  Tensor max() const {
    return x.masked_fill(present == 0, -std::numeric_limits<double>::infinity()).max(1);  // [B, hidden]
  }
  Tensor weighted_mean() const {
    const Tensor position = x.graph().arange(x.size(1), i64).to(x.dtype()) + 1;  // [T]
    const Tensor weights = present * position.unsqueeze(1);                      // [B, T, 1]
    return (x * weights).sum(1) / at_least(weights.sum(1), 1e-9);
  }
  Tensor last() const {
    const Tensor position = x.graph().arange(x.size(1), i64).to(x.dtype()) + 1;  // [T]
    const Tensor at = (present * position.unsqueeze(1)).argmax(1);               // i64 [B, 1]
    const Tensor is_last = at == x.graph().arange(x.size(1), i64);               // [B, T]
    return (x * is_last.to(x.dtype()).unsqueeze(2)).sum(1);                      // [B, hidden]
  }
  static Tensor at_least(const Tensor& value, double least) { return maximum(value, least); }
};

Tokens tokens_of(const EncoderInputs& inputs, const Tensor& states) {
  const Shape shape{states.size(0), states.size(1), 1};
  if (!inputs.mask) return {states, states.graph().full(shape, 1, states.dtype())};
  return {states, (*inputs.mask != 0).to(states.dtype()).unsqueeze(2)};
}

}  // namespace

const std::string& TextOptions::prompt(std::string_view name) const {
  const auto found = prompts.find(std::string(name));
  if (found != prompts.end()) return found->second;
  std::vector<std::string_view> names;
  for (const auto& [known, text] : prompts) names.push_back(known);
  throw UserError(fmt::format("the model has no prompt named {}", quote(name)), "embed_prompt",
                  names.empty() ? "its config_sentence_transformers.json has no prompts: give the text of the prompt"
                                : did_you_mean_or_list(name, names, "the prompts are"));
}

SentenceEncoder::SentenceEncoder(std::unique_ptr<Encoder> encoder, const Pooling& pooling, const TextOptions& texts)
    : Module(*encoder), encoder_(std::move(encoder)), pooling_(pooling), texts_(texts) {}

std::int64_t SentenceEncoder::width() const {
  const Pooling& p = pooling_;
  const int ways = p.cls + p.max + p.mean + p.mean_sqrt + p.weighted_mean + p.last;
  const std::int64_t all = ways * encoder_->width().value().value_or(0);
  return std::min(all, p.truncate_dim.value_or(all));
}

Tensor SentenceEncoder::embed(const EncoderInputs& inputs) const {
  return embed(inputs, encoder_->hidden_states(inputs).back());
}

Tensor SentenceEncoder::embed(const EncoderInputs& inputs, const Tensor& states) const {
  const Tokens tokens = tokens_of(inputs, states);
  std::vector<Tensor> parts;
  if (pooling_.cls) parts.push_back(states.select(1, 0));
  if (pooling_.max) parts.push_back(tokens.max());
  if (pooling_.mean) parts.push_back(tokens.sum() / Tokens::at_least(tokens.count(), 1e-9));
  if (pooling_.mean_sqrt) parts.push_back(tokens.sum() / sqrt(Tokens::at_least(tokens.count(), 1e-9)));
  if (pooling_.weighted_mean) parts.push_back(tokens.weighted_mean());
  if (pooling_.last) parts.push_back(tokens.last());
  Tensor vector = parts.size() == 1 ? parts.front() : concat(parts, -1);
  if (pooling_.normalize) vector = vector / Tokens::at_least(sqrt(square(vector).sum(-1, true)), 1e-12);
  return pooling_.truncate_dim ? vector.slice(1, 0, width()) : vector;
}

}  // namespace lathe::pretrained
