#include <fmt/core.h>

#include "models/pretrained/causal_lm_options.h"
#include "models/pretrained/config/model_keys.h"
#include "models/pretrained/config/options.h"
#include "models/pretrained/encoders/encoder.h"
#include "models/pretrained/encoders/encoder_options.h"
#include "models/pretrained/families.h"
#include "models/pretrained/image_models/image_model.h"
#include "models/pretrained/image_models/image_model_options.h"
#include "models/pretrained/pretrained.h"
#include "models/pretrained/seq2seq/seq2seq_lm.h"
#include "runtime/files/safetensors/tensor_folder.h"

namespace lathe::pretrained {

namespace {

/// A directory whose model is being made.
struct Source {
  ModelFiles& files;
  const TensorFolder& tensors;
  Config config;
  TensorNames names;

  bool holds(const std::string& parameter) const { return has_tensor(tensors, parameter, names); }
  void ignore(std::initializer_list<std::string> tensor_names) {
    names.ignored.insert(names.ignored.end(), tensor_names);
  }

  /// Decides whether an output layer with this table shares that of the embeddings. A shared table may have either
  /// name in the files.
  bool share(const std::string& embeddings, const std::string& head) {
    if (differ(tensors, embeddings, head, names)) {
      set_config(files, "tie_word_embeddings", "false");
      return false;
    }
    names.others.emplace_back(embeddings, head);
    return true;
  }
};

/// Rejects models with another kind of output layer. transformers and its forks choose the architecture names.
void check_architecture(const Config& config) {
  const std::string name = architecture(config);
  if (!name.empty() && !name.ends_with("ForCausalLM") && !name.ends_with("LMHeadModel"))
    reject_architecture(config, "causal language models, such as LlamaForCausalLM and GPT2LMHeadModel");
}

std::unique_ptr<CausalLm> make(DescribeCausalLm describe, Source& source) {
  check_architecture(source.config);
  CausalLmOptions options = describe(source.config);
  if (options.is_tied) options.is_tied = source.share(options.embed_name + ".weight", options.head_name + ".weight");
  if (options.is_tied) source.ignore({"lm_head.weight", "embed_out.weight"});
  return std::make_unique<CausalLm>(options);
}

std::unique_ptr<Encoder> make(DescribeEncoder describe, Source& source) {
  EncoderOptions options = describe(source.config);
  if (options.head) {
    source.ignore({"*.pooler.dense.weight", "*.pooler.dense.bias", options.head->table});
    if (options.head->is_tied)
      options.head->is_tied = source.share(options.embeddings + ".word_embeddings.weight", options.head->table);
  } else {
    source.ignore({options.head_tensors});
  }
  // Only the files show whether a base model has a pooler; a masked language model has none.
  if (options.head || !source.holds(options.pooler + ".weight")) options.pooler.clear();
  return std::make_unique<Encoder>(options);
}

std::unique_ptr<Seq2SeqLm> make(MakeSeq2SeqLm make_model, Source& source) {
  return make_model(source.config, [&](const std::string& first, const std::string& second) {
    return differ(source.tensors, first, second, source.names);
  });
}

std::unique_ptr<ImageModel> make(DescribeImageModel describe, Source& source) {
  ImageModelOptions options = describe(source.config);
  if (options.classes)
    source.ignore({"*.pooler.dense.weight", "*.pooler.dense.bias"});
  else
    source.ignore({"classifier.weight", "classifier.bias"});
  if (!source.holds(options.root + ".pooler.dense.weight")) options.pooled.reset();
  return std::make_unique<ImageModel>(options);
}

template <class Model>
constexpr ModelKind kind_of_model = ModelKind::causal;
template <>
constexpr ModelKind kind_of_model<Encoder> = ModelKind::encoder;
template <>
constexpr ModelKind kind_of_model<Seq2SeqLm> = ModelKind::seq2seq;
template <>
constexpr ModelKind kind_of_model<ImageModel> = ModelKind::image;

}  // namespace

template <class Model>
PretrainedModel<Model> load_pretrained(const std::filesystem::path& folder, const LoadOptions& options) {
  constexpr ModelKind kind = kind_of_model<Model>;
  PretrainedModel<Model> loaded{{read_config(folder)}, nullptr};
  const TensorFolder tensors = TensorFolder::open(folder);
  const Family& family = family_of(loaded.config, kind);
  Source source{loaded, tensors, model_config(loaded.config, family), family.names};
  check_counts(source.config, tensors.names().size());
  loaded.model = make(std::get<static_cast<std::size_t>(kind)>(family.make), source);
  take_weights(loaded, tensors, *loaded.model, source.names);
  std::optional<nn::Parameter> table;
  if constexpr (requires { loaded.model->table(); }) table = loaded.model->table();
  if (options.weights == WeightFormat::q8) quantize_weights(loaded, *loaded.model, table);
  return loaded;
}

template PretrainedModel<CausalLm> load_pretrained(const std::filesystem::path&, const LoadOptions&);
template PretrainedModel<Encoder> load_pretrained(const std::filesystem::path&, const LoadOptions&);
template PretrainedModel<Seq2SeqLm> load_pretrained(const std::filesystem::path&, const LoadOptions&);
template PretrainedModel<ImageModel> load_pretrained(const std::filesystem::path&, const LoadOptions&);

}  // namespace lathe::pretrained
