#include "models/generation/sequence_model.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/support/error.h"
#include "runtime/host/arena.h"

namespace lathe {

DType default_cache_dtype(const nn::Module& model, DType dtype) {
  const auto is_quantized = [](const nn::Parameter& parameter) { return parameter.is_quantized(); };
  return dtype == f32 && std::ranges::any_of(model.parameters(), is_quantized) ? bf16 : dtype;
}

Executable compile_over(const Parameters& store, const ir::Graph& graph, const SequenceModelOptions& options,
                        const DimBindings& sizes) {
  return compile(graph, {.target = options.target,
                         .mode = Mode::evaluation,
                         .parameters = store,
                         .share_states = true,
                         .sizes = sizes,
                         .threads = options.threads,
                         .cache = options.cache});
}

void check_prompts(std::span<const std::vector<SequenceModel::TokenId>> prompts) {
  if (prompts.empty()) throw UserError("there is no prompt", "generation_prompt", "give one or more");
  for (std::size_t i = 0; i < prompts.size(); ++i)
    if (prompts[i].empty())
      throw UserError(fmt::format("prompt {} has no tokens", i), "generation_prompt",
                      "give one token or more, such as the one that begins a text");
}

bool fits_in_memory(const Parameters& weights) {
  const std::int64_t available = memory_info().available;
  return available > 0 && weights.bytes() <= available / 2;
}

}  // namespace lathe
