#include "models/pretrained/encoders/encoder.h"
#include "models/pretrained/keys/model_keys.h"

namespace lathe::pretrained {

namespace {

struct EncoderFamily : FamilyRecord {
  DescribedEncoder (*describe)(const Config&);
};

const std::vector<EncoderFamily>& encoder_families() {
  static const std::vector<EncoderFamily> all{
      {{"bert", bert_keys}, describe_bert},
      {{"roberta", roberta_keys}, describe_roberta},
      {{"xlm-roberta", roberta_keys}, describe_roberta},
      {{"distilbert", distilbert_keys}, describe_distilbert},
  };
  return all;
}

/// Decides whether the output layer is tied: a shared table under either name, or its own table if the values differ.
void share_table(ModelFiles& files, const TensorFolder& tensors, EncoderOptions& options, TensorNames& names) {
  const std::string words = options.embeddings + ".word_embeddings.weight";
  options.head->is_tied = !differ(tensors, words, options.head->table, names);
  if (options.head->is_tied)
    names.others.emplace_back(words, options.head->table);
  else
    set_config(files, "tie_word_embeddings", "false");
}

}  // namespace

std::vector<FamilyRecord> encoder_records() { return records_of(encoder_families()); }

bool is_encoder(const Config& config) { return is_one_of(config, encoder_families()); }

PretrainedEncoder load_encoder(const std::filesystem::path& folder) {
  PretrainedEncoder loaded{{read_config(folder)}, nullptr};
  const TensorFolder tensors = TensorFolder::open(folder);
  const EncoderFamily& family = family_of(loaded.config, encoder_families(), ModelKind::encoder);
  const Config config = model_config(loaded.config, family.keys());
  check_counts(config, tensors.names().size());
  auto [options, names] = family.describe(config);
  if (options.head && options.head->is_tied) share_table(loaded, tensors, options, names);
  // Only the files show whether a base model has a pooler; a masked language model has none.
  if (options.head || !has_tensor(tensors, options.pooler + ".weight", names)) options.pooler.clear();
  if (options.head) names.ignored.insert(names.ignored.end(), {"*.pooler.dense.weight", "*.pooler.dense.bias"});
  loaded.model = std::make_unique<Encoder>(options);
  take_weights(loaded, tensors, *loaded.model, names);
  return loaded;
}

}  // namespace lathe::pretrained
