#include "models/pretrained/options.h"

#include <fmt/core.h>

#include <cmath>
#include <map>

#include "ir/support/error.h"

namespace lathe::pretrained {

namespace {

/// Returns the object with the rotary embedding options, in either format; nothing if the file has none.
std::optional<Config> rope_object(const Config& config, std::string_view kind) {
  if (config.has("rope_parameters")) {
    Config parameters = config.object("rope_parameters");
    if (!kind.empty() && parameters.has(kind)) return parameters.object(kind);
    return parameters;
  }
  if (config.has("rope_scaling")) return config.object("rope_scaling");
  return std::nullopt;
}

nn::RopeOptions::Scaling scaling_of(const Config& rope) {
  using Scaling = nn::RopeOptions::Scaling;
  const std::string_view key = rope.has("rope_type") ? "rope_type" : "type";
  const std::string type = rope.text(key, "default");
  if (type == "default") return Scaling::none;
  if (type == "linear") return Scaling::linear;
  if (type == "dynamic") return Scaling::dynamic;
  if (type == "yarn") return Scaling::yarn;
  if (type == "llama3") return Scaling::llama3;
  if (type == "longrope" || type == "su") return Scaling::longrope;
  rope.reject(key, "Lathe knows default, linear, dynamic, yarn, llama3 and longrope");
}

std::optional<double> real_if(const Config& config, std::string_view key) {
  return config.has(key) ? std::optional(config.real(key)) : std::nullopt;
}

double theta_of(const Config& config, const std::optional<Config>& rope, std::string_view kind) {
  if (rope && rope->has("rope_theta")) return rope->real("rope_theta");
  if (kind == "sliding_attention" && config.has("rope_local_base_freq")) return config.real("rope_local_base_freq");
  if (config.has("rope_theta")) return config.real("rope_theta");
  return config.real("rotary_emb_base", 10000);
}

/// Older files give the period of layers without a window.
bool is_full_by_pattern(const Config& config, int layer) {
  const std::string family = config.text("model_type");
  if (family == "gemma2") return layer % 2 == 1;
  if (family == "gemma3_text") {
    const std::int64_t pattern = config.integer("sliding_window_pattern", 6);
    if (pattern < 1) config.reject("sliding_window_pattern", "it must be 1 or more");
    return (layer + 1) % pattern == 0;
  }
  if (family.starts_with("qwen"))
    return !config.boolean("use_sliding_window", false) || layer < config.integer("max_window_layers", 28);
  return false;
}

}  // namespace

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

nn::Activation activation(const Config& config, std::string_view key, nn::Activation fallback) {
  return config.has(key) ? activation(config, key) : fallback;
}

Dim size(const Config& config, std::string_view key, std::string_view name) {
  const std::int64_t value = config.integer(key);
  if (value < 1 || value > (std::int64_t{1} << 31)) config.reject(key, "a size is from 1 to 2^31");
  return Dim(name, value);
}

Dim size(const Config& config, std::string_view key, std::string_view name, std::int64_t fallback) {
  return config.has(key) ? size(config, key, name) : Dim(name, fallback);
}

int layers_of(const Config& config, std::string_view key, std::int64_t fallback) {
  const std::int64_t count = config.integer(key, fallback);
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
  const Dim h = size(config, heads_key, "h", 12);
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

nn::RopeOptions rope_options(const Config& config, std::string_view kind) {
  const std::optional<Config> rope = rope_object(config, kind);
  nn::RopeOptions options{.theta = theta_of(config, rope, kind)};
  // In older files, scaling applies only to layers without a window.
  if (!rope || (kind == "sliding_attention" && !config.has("rope_parameters"))) return options;
  options.scaling = scaling_of(*rope);
  options.max_length = config.integer("max_position_embeddings", 0);
  // Phi-3 has this key outside of the object, where transformers prefers it.
  options.original_length = config.integer("original_max_position_embeddings",
                                           rope->integer("original_max_position_embeddings", options.max_length));
  using Scaling = nn::RopeOptions::Scaling;
  const bool needs_length = options.scaling != Scaling::none && options.scaling != Scaling::linear;
  if (needs_length && (options.max_length < 1 || options.original_length < 1))
    config.reject("max_position_embeddings", "the scaling of rotary embedding needs the length that was trained for");
  if (options.scaling == Scaling::longrope) {
    options.short_factor = rope->reals("short_factor");
    options.long_factor = rope->reals("long_factor");
    options.factor =
        rope->real("factor", static_cast<double>(options.max_length) / static_cast<double>(options.original_length));
  } else if (options.scaling != Scaling::none) {
    options.factor = rope->real("factor");
    if (!(options.factor > 0)) rope->reject("factor", "it must be positive");
  }
  options.low_frequency = rope->real("low_freq_factor", options.low_frequency);
  options.high_frequency = rope->real("high_freq_factor", options.high_frequency);
  options.beta_fast = rope->real("beta_fast", options.beta_fast);
  options.beta_slow = rope->real("beta_slow", options.beta_slow);
  options.truncate = rope->boolean("truncate", true);
  options.attention_factor = real_if(*rope, "attention_factor");
  options.mscale = real_if(*rope, "mscale");
  options.mscale_all_dim = real_if(*rope, "mscale_all_dim");
  return options;
}

Dim rotary_dim(const Config& config) {
  const std::optional<Config> rope = rope_object(config, {});
  const double share = rope && rope->has("partial_rotary_factor")
                           ? rope->real("partial_rotary_factor")
                           : config.real("partial_rotary_factor", config.real("rotary_pct", 1));
  if (!(share > 0 && share <= 1)) config.reject("partial_rotary_factor", "it is above 0 and at most 1");
  const Dim d = attention_options(config).d;
  return share == 1 ? d : Dim("rotary", static_cast<std::int64_t>(static_cast<double>(*d.value()) * share));
}

std::optional<std::int64_t> window_of(const Config& config, int layer) {
  if (!config.has("sliding_window")) return std::nullopt;
  bool full = is_full_by_pattern(config, layer);
  if (config.has("layer_types")) {
    full = config.texts("layer_types").at(static_cast<std::size_t>(layer)) == "full_attention";
  }
  if (full) return std::nullopt;
  return config.integer("sliding_window");
}

}  // namespace lathe::pretrained
