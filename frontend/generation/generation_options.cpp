#include "frontend/generation/generation_options.h"

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

}  // namespace

GenerationOptions load_generation_options(const std::filesystem::path& folder) {
  GenerationOptions options;
  for (const char* name : {"generation_config.json", "config.json"}) {
    const std::filesystem::path file = folder / name;
    if (!std::filesystem::exists(file)) continue;
    const pretrained::Config config = pretrained::Config::parse(read_file(file, largest_file), file.string());
    if (options.stop_tokens.empty()) options.stop_tokens = stop_tokens(config);
    if (std::string_view(name) == "config.json") break;
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
  return options;
}

}  // namespace lathe
