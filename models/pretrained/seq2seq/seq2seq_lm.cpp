#include "models/pretrained/seq2seq/seq2seq_lm.h"

#include <algorithm>

#include "frontend/ops/losses.h"
#include "frontend/ops/ops.h"
#include "models/pretrained/keys/model_keys.h"
#include "models/pretrained/options.h"

namespace lathe::pretrained {

namespace {

struct Seq2SeqFamily : FamilyRecord {
  std::unique_ptr<Seq2SeqLm> (*make)(const Config&, const SeparateTables&);
  TensorNames names;
};

const std::vector<Seq2SeqFamily>& seq2seq_families() {
  // Files store the shared table under one or several names. Older files have an unused bias of the decoder's
  // cross-attention.
  static const std::vector<Seq2SeqFamily> all{
      {{"t5", t5_keys},
       make_t5,
       {.ignored = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight",
                    "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"},
        .others = {{"shared.weight", "encoder.embed_tokens.weight"},
                   {"shared.weight", "decoder.embed_tokens.weight"},
                   {"shared.weight", "lm_head.weight"}}}},
  };
  return all;
}

}  // namespace

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

std::vector<FamilyRecord> seq2seq_records() { return records_of(seq2seq_families()); }

bool is_seq2seq(const Config& config) { return is_one_of(config, seq2seq_families()); }

PretrainedSeq2SeqLm load_seq2seq_lm(const std::filesystem::path& folder, const LoadOptions& options) {
  PretrainedSeq2SeqLm loaded{{read_config(folder)}, nullptr};
  const TensorFolder tensors = TensorFolder::open(folder);
  const Seq2SeqFamily& family = family_of(loaded.config, seq2seq_families(), ModelKind::seq2seq);
  const Config config = model_config(loaded.config, family.keys());
  check_counts(config, tensors.names().size());
  const auto is_separate = [&](const char* table) { return differ(tensors, "shared.weight", table, family.names); };
  loaded.model = family.make(config, {.encoder = is_separate("encoder.embed_tokens.weight"),
                                      .decoder = is_separate("decoder.embed_tokens.weight"),
                                      .head = is_separate("lm_head.weight")});
  take_weights(loaded, tensors, *loaded.model, family.names);
  if (options.weights == WeightFormat::q8) quantize_weights(loaded, *loaded.model, loaded.model->table());
  return loaded;
}

}  // namespace lathe::pretrained
