#include "frontend/generation/generation_options.h"

#include <optional>

#include "frontend/pretrained/config.h"
#include "runtime/files/atomic_file.h"

namespace lathe {

namespace {

constexpr std::uint64_t largest_file = std::uint64_t{16} << 20;

std::vector<std::int64_t> stop_tokens(const pretrained::Config& config) {
  std::vector<std::int64_t> tokens;
  if (!config.has("eos_token_id")) return tokens;
  if (!config.is_list("eos_token_id")) return {config.integer("eos_token_id")};
  return config.integers("eos_token_id");
}

/// The first of these files that there is.
std::optional<pretrained::Config> read_first(const std::vector<std::filesystem::path>& files) {
  for (const std::filesystem::path& file : files)
    if (std::filesystem::exists(file)) return pretrained::Config::parse(read_file(file, largest_file), file.string());
  return std::nullopt;
}

void take(const pretrained::Config& config, GenerationOptions& options) {
  options.max_new_tokens = config.integer("max_new_tokens", options.max_new_tokens);
  if (options.max_new_tokens < 1) config.reject("max_new_tokens", "give 1 or more");
  Sampling& sampling = options.sampling;
  sampling.repetition_penalty = config.real("repetition_penalty", 1);
  if (config.boolean("do_sample", false))
    sampling = {.repetition_penalty = sampling.repetition_penalty,
                .temperature = config.real("temperature", 1),
                .top_k = config.integer("top_k", 50),
                .top_p = config.real("top_p", 1),
                .min_p = config.real("min_p", 0)};
  check(sampling);
}

}  // namespace

GenerationOptions load_generation_options(const std::filesystem::path& folder, const std::filesystem::path& base) {
  const auto files = [&](const char* name) {
    std::vector<std::filesystem::path> found{folder / name};
    if (!base.empty()) found.push_back(base / name);
    return found;
  };
  GenerationOptions options;
  if (const auto generation = read_first(files("generation_config.json"))) {
    options.stop_tokens = stop_tokens(*generation);
    take(*generation, options);
  }
  if (!options.stop_tokens.empty()) return options;
  if (const auto model = read_first(files("config.json"))) options.stop_tokens = stop_tokens(*model);
  return options;
}

}  // namespace lathe
