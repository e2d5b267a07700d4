#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "frontend/decode/decoding.h"

namespace lathe {

/// How texts go on, and where they end.
struct GenerationOptions {
  std::int64_t max_new_tokens = 256;
  Sampling sampling = {.temperature = 0};  ///< greedy
  std::uint64_t seed = 0;                  ///< sequence i of a batch draws by seed + i
  std::vector<std::int64_t> stop_tokens = {};
  /// A text ends before the first of them.
  std::vector<std::string> stop_strings = {};
};

/// What generation_config.json of a model's directory says, or where that has none config.json: eos_token_id (one or
/// several), max_new_tokens, and with do_sample temperature, top_k, top_p, min_p; repetition_penalty. Without a file
/// what GenerationOptions says. `base`: the directory of the model that an adapter in `folder` belongs to, whose
/// files count for what those of the adapter do not say. UserErrors of pretrained::Config and [decoding_options].
GenerationOptions load_generation_options(const std::filesystem::path& folder,
                                          const std::filesystem::path& base = {});

}  // namespace lathe
