#include "models/pretrained/seq2seq/seq2seq_lm.h"

#include "frontend/ops/losses.h"
#include "frontend/ops/ops.h"

namespace lathe::pretrained {

Seq2SeqLm::Seq2SeqLm(const Config& config, std::string_view kind)
    : Module(kind),
      start_token_(config.integer("decoder_start_token_id", config.integer("pad_token_id", 0))),
      padding_(config.integer("pad_token_id", 0)),
      end_token_(config.integer("eos_token_id", 1)) {}

std::vector<Tensor> Seq2SeqLm::encode(const Seq2SeqInputs& inputs) const {
  return encode(embed(inputs.ids, inputs.dtype, false), inputs.mask);
}

std::vector<Tensor> Seq2SeqLm::decode(const Seq2SeqInputs& inputs, const Tensor& memory) const {
  return decode(embed(inputs.decoder_ids, inputs.dtype, true), inputs.decoder_mask, memory, inputs.mask);
}

Tensor Seq2SeqLm::logits(const Seq2SeqInputs& inputs) const {
  return head(decode(inputs, encode(inputs).back()).back());
}

Tensor Seq2SeqLm::loss(const Seq2SeqInputs& inputs, const Tensor& labels) const {
  return cross_entropy(logits(inputs), labels, -100);
}

Tensor Seq2SeqLm::shifted(const Tensor& labels) const {
  const Tensor start = labels.graph().full({labels.size(0), 1}, start_token_, i64);
  const Tensor before = labels.slice(1, 0, labels.size(1) - 1);
  return concat({start, where(before == -100, padding_, before)}, 1);
}

}  // namespace lathe::pretrained
