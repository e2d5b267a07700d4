#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "frontend/pretrained/key_table.h"

/// Low-rank adapters (Hu et al. 2021) as the library PEFT describes them in an adapter_config.json.
namespace lathe::pretrained {

/// Modules of a model: a list of paths or of their ends from a dot on ("q_proj" is "model.layers.0.self_attn.q_proj"
/// too), or a regular expression that a whole path matches.
using ModuleNames = std::variant<std::vector<std::string>, std::string>;

inline constexpr std::int64_t largest_rank = std::int64_t{1} << 20;

struct LoraConfig {
  /// How A starts; B starts at zero, but for `random`.
  enum class Start : std::uint8_t {
    kaiming,   ///< uniform in +-in^-0.5
    gaussian,  ///< normal with a standard deviation of 1 / r
    random,    ///< A and B as two linear layers: for tests
  };

  std::int64_t r = 8;
  double alpha = 8;
  bool rslora = false;  ///< the scale is alpha / sqrt(r) (Kalajdzievski 2023) instead of alpha / r
  double dropout = 0;   ///< of what an adapter reads, in training
  Start start = Start::kaiming;

  /// Which linear layers have an adapter; the text "all-linear" is all of them but the output layer.
  ModuleNames targets = "all-linear";
  ModuleNames excluded = {};
  /// Of layers chosen by the end of their path, those within these numbers of a stack; empty: all. The number follows
  /// one of `layers_pattern`, or any name where that is empty.
  std::vector<std::int64_t> layers = {};
  std::vector<std::string> layers_pattern = {};
  /// Ranks and alphas of single layers, by regular expressions of the ends of their paths; the first that matches
  /// counts, in alphabetical order, which is that of PEFT's files.
  std::map<std::string, std::int64_t> rank_pattern = {};
  std::map<std::string, double> alpha_pattern = {};
  /// Modules that are trained as a whole and saved with the adapter, by the ends of their paths.
  std::vector<std::string> modules_to_save = {};

  std::string base_model = {};  ///< where the weights are that the adapter belongs to
  std::string task_type = "CAUSAL_LM";

  std::int64_t r_of(std::string_view path) const;
  /// What multiplies the adapter of a layer.
  double scale_of(std::string_view path) const;
};

/// Every key of PEFT's LoraConfig.
const KeyTable& lora_keys();

/// Reads an adapter_config.json. Keys that lora_keys() refuses or does not have are errors. UserErrors of Config,
/// [config_value].
LoraConfig read_lora_config(const Config& config);
LoraConfig read_lora_config(const std::filesystem::path& folder);

/// The text of an adapter_config.json, keys sorted. `fan_in_fan_out`: the weights of the adapted layers are [in,
/// out].
std::string lora_config_text(const LoraConfig& config, bool fan_in_fan_out);

}  // namespace lathe::pretrained
