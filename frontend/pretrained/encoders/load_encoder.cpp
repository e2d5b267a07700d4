#include "frontend/pretrained/encoders/encoder.h"

namespace lathe::pretrained {

namespace {

struct EncoderFamily {
  std::string_view model_type;
  DescribedEncoder (*describe)(const Config&);
};

const std::vector<EncoderFamily>& encoder_families() {
  static const std::vector<EncoderFamily> all{
      {"bert", describe_bert},
      {"roberta", describe_roberta},
      {"xlm-roberta", describe_roberta},
      {"distilbert", describe_distilbert},
  };
  return all;
}

}  // namespace

bool is_encoder(const Config& config) { return is_one_of(config, encoder_families()); }

PretrainedEncoder load_encoder(const std::filesystem::path& folder) {
  const TensorFolder tensors = TensorFolder::open(folder);
  PretrainedEncoder loaded{{read_config(folder)}, nullptr};
  auto [options, names] = family_of(loaded.config, encoder_families()).describe(loaded.config);
  // Only the files say whether a base model has a pooler; a masked language model has none.
  if (options.head || !has_tensor(tensors, options.pooler + ".weight", names)) options.pooler.clear();
  if (options.head) names.ignored.insert(names.ignored.end(), {"*.pooler.dense.weight", "*.pooler.dense.bias"});
  loaded.model = std::make_unique<Encoder>(options);
  take_weights(loaded, tensors, *loaded.model, names);
  return loaded;
}

}  // namespace lathe::pretrained
