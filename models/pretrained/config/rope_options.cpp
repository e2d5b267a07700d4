#include "models/pretrained/config/rope_options.h"

#include "models/pretrained/config/options.h"

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

}  // namespace

nn::RopeOptions rope_options(const Config& config, std::string_view kind) {
  const std::optional<Config> rope = rope_object(config, kind);
  nn::RopeOptions options{.theta = theta_of(config, rope, kind)};
  // In older files, scaling applies only to layers without a window.
  if (!rope || (kind == "sliding_attention" && !config.has("rope_parameters"))) return options;
  options.scaling = scaling_of(*rope);
  options.max_length = config.integer("max_position_embeddings", 0);
  // Some files have this key outside of the object, where transformers prefers it.
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

}  // namespace lathe::pretrained
