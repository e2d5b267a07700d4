#include "models/pretrained/lora/lora_config.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "models/pretrained/lora/module_names.h"
#include "runtime/files/file_io.h"

namespace lathe::pretrained {

namespace {

LoraConfig::Start read_start(const Config& config) {
  constexpr std::string_view key = "init_lora_weights";
  if (!config.is_text(key)) return config.boolean(key, true) ? LoraConfig::Start::kaiming : LoraConfig::Start::random;
  const std::string name = config.text(key);
  if (name == "gaussian") return LoraConfig::Start::gaussian;
  // These initialize A differently, but the values of A are in the file by now.
  if (name == "eva" || name == "orthogonal") return LoraConfig::Start::kaiming;
  config.reject(key, "Lathe knows true, false and \"gaussian\"; others may change the weights of the model itself");
}

ModuleNames read_names(const Config& config, std::string_view key) {
  if (!config.has(key)) return {};
  return config.is_text(key) ? ModuleNames(config.text(key)) : ModuleNames(config.texts(key));
}

/// Reads a list, or a single value as a list of one.
std::vector<std::int64_t> integers(const Config& config, std::string_view key) {
  if (!config.has(key)) return {};
  return config.is_list(key) ? config.integers(key) : std::vector{config.integer(key)};
}
std::vector<std::string> texts(const Config& config, std::string_view key) {
  if (!config.is_set(key)) return {};
  return config.is_list(key) ? config.texts(key) : std::vector{config.text(key)};
}

void check_rank(const Config& config, std::string_view key) {
  const std::int64_t r = config.integer(key);
  if (r < 1 || r > largest_rank) config.reject(key, "a rank is from 1 to 2^20");
}
void check_alpha(const Config& config, std::string_view key) {
  if (!std::isfinite(config.real(key))) config.reject(key, "give a finite number");
}

void read_patterns(const Config& config, LoraConfig& lora) {
  if (config.has("rank_pattern")) {
    const Config ranks = config.object("rank_pattern");
    for (const std::string& key : ranks.keys()) {
      check_rank(ranks, key);
      lora.rank_pattern.emplace(key, ranks.integer(key));
    }
  }
  if (config.has("alpha_pattern")) {
    const Config alphas = config.object("alpha_pattern");
    for (const std::string& key : alphas.keys()) {
      check_alpha(alphas, key);
      lora.alpha_pattern.emplace(key, alphas.real(key));
    }
  }
}

/// Writes integral values as integers, like PEFT.
nlohmann::json number(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return static_cast<std::int64_t>(value);
  return value;
}

nlohmann::json names_json(const ModuleNames& names) {
  if (const auto* text = std::get_if<std::string>(&names)) return *text;
  return std::get<std::vector<std::string>>(names);
}

template <class List>
nlohmann::json or_null(const List& list) {
  return list.empty() ? nlohmann::json() : nlohmann::json(list);
}

nlohmann::json start_json(LoraConfig::Start start) {
  switch (start) {
    case LoraConfig::Start::kaiming: return true;
    case LoraConfig::Start::gaussian: return "gaussian";
    case LoraConfig::Start::random: return false;
  }
  return true;
}

}  // namespace

std::int64_t LoraConfig::r_of(std::string_view path) const {
  for (const auto& [pattern, rank] : rank_pattern)
    if (ends_in_match(pattern, path)) return rank;
  return r;
}

double LoraConfig::scale_of(std::string_view path) const {
  const auto rank = static_cast<double>(r_of(path));
  double a = alpha;
  for (const auto& [pattern, value] : alpha_pattern)
    if (ends_in_match(pattern, path)) {
      a = value;
      break;
    }
  return a / (rslora ? std::sqrt(rank) : rank);
}

LoraConfig read_lora_config(const Config& file) {
  if (file.text("peft_type") != "LORA") file.reject("peft_type", "Lathe knows LORA");
  const Config config = known_keys(file, lora_keys());
  if (!config.is_set("target_modules")) config.reject("target_modules", "it names the layers that have an adapter");
  LoraConfig lora{.r = config.integer("r", 8),
                  .alpha = config.real("lora_alpha", 8),
                  .rslora = config.boolean("use_rslora", false),
                  .dropout = config.real("lora_dropout", 0),
                  .start = read_start(config),
                  .targets = read_names(config, "target_modules"),
                  .excluded = read_names(config, "exclude_modules"),
                  .layers = integers(config, "layers_to_transform"),
                  .layers_pattern = texts(config, "layers_pattern"),
                  .modules_to_save = texts(config, "modules_to_save"),
                  .base_model = config.text("base_model_name_or_path", ""),
                  .task_type = file.text("task_type", "")};
  if (config.has("r")) check_rank(config, "r");
  if (config.has("lora_alpha")) check_alpha(config, "lora_alpha");
  if (!(lora.dropout >= 0 && lora.dropout < 1)) config.reject("lora_dropout", "a rate is from 0 up to, without, 1");
  read_patterns(config, lora);
  return lora;
}

LoraConfig read_lora_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "adapter_config.json";
  return read_lora_config(Config::parse(read_file(path, largest_config), path.string()));
}

std::string lora_config_text(const LoraConfig& config, bool fan_in_fan_out) {
  nlohmann::json alphas = nlohmann::json::object();
  for (const auto& [pattern, alpha] : config.alpha_pattern) alphas[pattern] = number(alpha);
  nlohmann::json json{{"alpha_pattern", alphas},
                      {"auto_mapping", nullptr},
                      {"base_model_name_or_path", or_null(config.base_model)},
                      {"bias", "none"},
                      {"exclude_modules", nullptr},
                      {"fan_in_fan_out", fan_in_fan_out},
                      {"inference_mode", true},
                      {"init_lora_weights", start_json(config.start)},
                      {"layers_pattern", or_null(config.layers_pattern)},
                      {"layers_to_transform", or_null(config.layers)},
                      {"lora_alpha", number(config.alpha)},
                      {"lora_bias", false},
                      {"lora_dropout", config.dropout},
                      {"modules_to_save", or_null(config.modules_to_save)},
                      {"peft_type", "LORA"},
                      {"r", config.r},
                      {"rank_pattern", nlohmann::json(config.rank_pattern)},
                      {"revision", nullptr},
                      {"target_modules", names_json(config.targets)},
                      {"task_type", or_null(config.task_type)},
                      {"use_dora", false},
                      {"use_rslora", config.rslora}};
  if (const auto* list = std::get_if<std::vector<std::string>>(&config.excluded); !list || !list->empty())
    json["exclude_modules"] = names_json(config.excluded);
  return json.dump(2) + "\n";
}

}  // namespace lathe::pretrained
