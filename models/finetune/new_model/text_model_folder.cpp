#include "models/finetune/new_model/text_model_folder.h"

#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>

#include "models/finetune/model_directory.h"
#include "runtime/files/safetensors/tensor_folder.h"
#include "runtime/files/write/atomic_file.h"

namespace lathe {

namespace {

using nlohmann::json;

json config_of(const TextModelSettings& s) {
  json config = {
      {"vocab_size", s.vocab}, {"torch_dtype", "float32"}, {"bos_token_id", nullptr}, {"eos_token_id", nullptr}};
  if (s.kind == "gpt") {
    config.update({{"model_type", "gpt2"},
                   {"architectures", {"GPT2LMHeadModel"}},
                   {"n_embd", s.d_model},
                   {"n_layer", s.layers},
                   {"n_head", s.heads},
                   {"n_positions", s.context},
                   {"n_inner", nullptr},
                   {"activation_function", "gelu_new"},
                   {"layer_norm_epsilon", 1e-5},
                   {"resid_pdrop", s.dropout},
                   {"embd_pdrop", s.dropout},
                   {"attn_pdrop", s.dropout},
                   {"tie_word_embeddings", true}});
    return config;
  }
  config.update({{"model_type", "llama"},
                 {"architectures", {"LlamaForCausalLM"}},
                 {"hidden_size", s.d_model},
                 {"intermediate_size", feed_forward_size(s)},
                 {"num_hidden_layers", s.layers},
                 {"num_attention_heads", s.heads},
                 {"num_key_value_heads", s.heads},
                 {"head_dim", s.d_model / s.heads},
                 {"max_position_embeddings", s.context},
                 {"rms_norm_eps", 1e-5},
                 {"rope_theta", 10000.0},
                 {"hidden_act", "silu"},
                 {"attention_bias", false},
                 {"mlp_bias", false},
                 {"tie_word_embeddings", false}});
  return config;
}

/// Returns the name of a parameter of models::Gpt or models::Llama in Hugging Face files.
std::string tensor_name(const TextModelSettings& s, const std::string& parameter) {
  if (s.kind == "gpt") {
    const bool table = parameter == "wte" || parameter == "wpe";
    return "transformer." + parameter + (table ? ".weight" : "");
  }
  static const std::map<std::string, std::string> names{{"embed", "model.embed_tokens"},
                                                        {"norm", "model.norm"},
                                                        {"lm_head", "lm_head"},
                                                        {"input_norm", "input_layernorm"},
                                                        {"post_norm", "post_attention_layernorm"},
                                                        {"q_proj", "self_attn.q_proj"},
                                                        {"k_proj", "self_attn.k_proj"},
                                                        {"v_proj", "self_attn.v_proj"},
                                                        {"o_proj", "self_attn.o_proj"},
                                                        {"gate_proj", "mlp.gate_proj"},
                                                        {"up_proj", "mlp.up_proj"},
                                                        {"down_proj", "mlp.down_proj"}};
  const std::size_t dot = parameter.rfind('.');
  if (dot == std::string::npos) return names.at(parameter) + ".weight";
  return "model." + parameter.substr(0, dot + 1) + names.at(parameter.substr(dot + 1)) + ".weight";
}

}  // namespace

void write_model_folder(const std::filesystem::path& folder, const TextModelSettings& model, const TextCodec& codec,
                        const Parameters& weights) {
  std::vector<PlacedTensor> tensors;
  for (const nn::Parameter& parameter : text_modules(model).parameters())
    tensors.push_back(
        {"model.safetensors", view_of(tensor_name(model, parameter.name()), weights.get(parameter.name()))});
  save_folder(folder, {}, [&](FolderSave& save) {
    add_tensor_files(save, tensors);
    save.write("config.json", config_of(model).dump(2) + "\n");
    save.write("generation_config.json",
               json{{"do_sample", true}, {"temperature", 0.8}, {"top_k", 40}}.dump(2) + "\n");
    save.write("tokenizer.json", codec.tokenizer_json());
    save.write(
        "tokenizer_config.json",
        json{{"tokenizer_class", "PreTrainedTokenizerFast"}, {"model_max_length", model.context}}.dump(2) + "\n");
  });
}

void prepare_model_folder(const std::filesystem::path& folder) {
  AtomicFile::remove_leftovers_in(folder);
  check_save(
      folder,
      {"model.safetensors", "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"}, {});
}

}  // namespace lathe
