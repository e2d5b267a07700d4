#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/pretrained/config/key_table.h"

/// Low-rank adapters (Hu et al. 2021) in the format of adapter_config.json of the PEFT library.
namespace lathe::pretrained {

/// Modules of a model: a list of paths or of path suffixes that start at a dot ("q_proj" matches
/// "model.layers.0.self_attn.q_proj"), or a regular expression that matches whole paths.
using ModuleNames = std::variant<std::vector<std::string>, std::string>;

inline constexpr std::int64_t largest_rank = std::int64_t{1} << 20;

struct LoraConfig {
  /// Initializer of A; B starts at zero, except for `random`.
  enum class Start : std::uint8_t {
    kaiming,   ///< uniform in +-in^-0.5
    gaussian,  ///< normal with a standard deviation of 1 / r
    random,    ///< A and B like two linear layers: for tests
  };

  std::int64_t r = 8;
  double alpha = 8;
  bool rslora = false;  ///< the scale is alpha / sqrt(r) (Kalajdzievski 2023) instead of alpha / r
  double dropout = 0;   ///< of an adapter's input, in training
  Start start = Start::kaiming;

  /// Linear layers with an adapter; "all-linear" selects all except the output layer.
  ModuleNames targets = "all-linear";
  ModuleNames excluded = {};
  /// Of layers selected by path suffix, only those with these numbers in a stack; empty: all. The number follows one
  /// of `layers_pattern`, or any name if that is empty.
  std::vector<std::int64_t> layers = {};
  std::vector<std::string> layers_pattern = {};
  /// Ranks and alphas of single layers, by regular expressions for the ends of their paths. The first match in
  /// alphabetical order, which is that of PEFT's files, applies.
  std::map<std::string, std::int64_t> rank_pattern = {};
  std::map<std::string, double> alpha_pattern = {};
  /// Modules that are trained as a whole and saved with the adapter, by path suffix.
  std::vector<std::string> modules_to_save = {};

  std::string base_model = {};  ///< where the base model's weights are
  std::string task_type = "CAUSAL_LM";

  std::int64_t r_of(std::string_view path) const;
  /// Returns the factor of a layer's adapter.
  double scale_of(std::string_view path) const;
};

/// Returns a rule for every key of PEFT's LoraConfig.
const KeyTable& lora_keys();

/// Reads an adapter_config.json. Keys that lora_keys() refuses or does not contain are errors. Throws UserErrors of
/// Config, [config_value].
LoraConfig read_lora_config(const Config& config);
LoraConfig read_lora_config(const std::filesystem::path& folder);

/// Returns the text of an adapter_config.json with sorted keys. `fan_in_fan_out`: the weights of the adapted layers
/// are [in, out].
std::string lora_config_text(const LoraConfig& config, bool fan_in_fan_out);

}  // namespace lathe::pretrained
