#include "models/pretrained/config/options.h"

#include <fmt/core.h>

#include <cmath>
#include <map>

#include "ir/support/error.h"

namespace lathe::pretrained {

DType stored_dtype(const Config& config) {
  const std::string_view key = config.has("dtype") ? "dtype" : "torch_dtype";
  const std::string dtype = config.text(key, "float32");
  if (dtype == "float32") return f32;
  if (dtype == "bfloat16") return bf16;
  if (dtype == "float16") return f16;
  if (dtype == "float64") return f64;
  config.reject(key, "Lathe reads weights of float64, float32, bfloat16 and float16");
}

std::optional<nn::Activation> activation_named(std::string_view name) {
  using nn::Activation;
  static const std::map<std::string_view, Activation> all{
      {"silu", Activation::silu},
      {"swish", Activation::silu},
      {"gelu", Activation::gelu},
      {"gelu_python", Activation::gelu},
      {"gelu_new", Activation::gelu_tanh},
      {"gelu_fast", Activation::gelu_tanh},
      {"gelu_accurate", Activation::gelu_tanh},
      {"gelu_pytorch_tanh", Activation::gelu_tanh},
      {"gelu_python_tanh", Activation::gelu_tanh},
      {"quick_gelu", Activation::quick_gelu},
      {"relu", Activation::relu},
      {"relu2", Activation::relu_squared},
      {"relu6", Activation::relu6},
      {"leaky_relu", Activation::leaky_relu},
      {"sigmoid", Activation::sigmoid},
      {"tanh", Activation::tanh},
      {"mish", Activation::mish},
      {"linear", Activation::linear},
  };
  const auto found = all.find(name);
  return found == all.end() ? std::nullopt : std::optional(found->second);
}

nn::Activation activation(const Config& config, std::string_view key) {
  if (const auto found = activation_named(config.text(key))) return *found;
  config.reject(key,
                "Lathe knows silu, gelu, gelu_new, quick_gelu, relu, relu2, relu6, leaky_relu, sigmoid, tanh, "
                "mish and linear");
}

Dim size(const Config& config, std::string_view key, std::string_view name) {
  const std::int64_t value = config.integer(key);
  if (value < 1 || value > (std::int64_t{1} << 31)) config.reject(key, "a size is from 1 to 2^31");
  return Dim(name, value);
}

int layers_of(const Config& config, std::string_view key) {
  const std::int64_t count = config.integer(key);
  if (count < 1 || count > 10000) config.reject(key, "a model has from 1 to 10000 layers");
  return static_cast<int>(count);
}

std::string architecture(const Config& config) {
  if (!config.has("architectures")) return {};
  const std::vector<std::string> all = config.texts("architectures");
  return all.empty() ? std::string() : all.front();
}

void require_plain(const Config& config, std::string_view key, bool plain) {
  if (config.has(key) && !plain) config.reject(key, "Lathe does not know this option");
}

nn::SelfAttentionOptions even_heads(const Config& config, const Dim& hidden, std::string_view heads_key) {
  const Dim h = size(config, heads_key, "h");
  const auto d = hidden.divided_by(h);
  if (!d) config.reject(heads_key, fmt::format("{} must be a multiple of it", hidden.to_string()));
  return {.hidden = hidden,
          .h = h,
          .kv = h,
          .d = Dim("d", *d),
          .dtype = stored_dtype(config),
          .attention = {.scale = 1 / std::sqrt(static_cast<double>(*d->value()))}};
}

nn::SelfAttentionOptions attention_options(const Config& config) {
  const Dim hidden = size(config, "hidden_size", "hidden"), h = size(config, "num_attention_heads", "h");
  const Dim kv = config.has("num_key_value_heads") ? size(config, "num_key_value_heads", "kv") : h;
  if (!config.has("head_dim") && !hidden.divided_by(h))
    config.reject("num_attention_heads", fmt::format("{} must be a multiple of it", hidden.to_string()));
  const Dim d = config.has("head_dim") ? size(config, "head_dim", "d") : Dim("d", *hidden.divided_by(h));
  if (!h.divided_by(kv))
    config.reject("num_key_value_heads", fmt::format("{} must be a multiple of it", h.to_string()));
  return {.hidden = hidden,
          .h = h,
          .kv = kv,
          .d = d,
          .dtype = stored_dtype(config),
          .attention = {.scale = 1 / std::sqrt(static_cast<double>(*d.value()))}};
}

nn::NormOptions norm_options(const Config& config, std::string_view eps_key) {
  return {.dtype = stored_dtype(config), .eps = config.real(eps_key)};
}

std::optional<std::int64_t> window_of(const Config& config, std::size_t layer, bool is_full) {
  if (!config.has("sliding_window")) return std::nullopt;
  if (config.has("layer_types")) is_full = config.texts("layer_types").at(layer) == "full_attention";
  return is_full ? std::nullopt : std::optional(config.integer("sliding_window"));
}

}  // namespace lathe::pretrained
