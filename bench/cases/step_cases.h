#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/initial_values.h"
#include "ir/tensor/graph.h"
#include "ir/tensor/interpret/interpreter.h"

/// The training and decoding steps that `lathe bench` and bench_training_step measure.
namespace lathe::bench {

struct StepCase {
  std::string name, what;                                   ///< "gpt2", "GPT-2 124M, 12 layers, ..., B=4 T=64"
  std::vector<std::pair<std::string, std::int64_t>> sizes;  ///< of the model, for peers that build it too
  ir::Graph forward;                                        ///< with the output "loss"
  bool trains = true;                                       ///< false: `forward` itself is the step
  std::vector<Initializer> initializers;
  Tensors inputs;
  std::int64_t tokens = 0;  ///< per step
  double flops = 0;         ///< per step: 6 N + 6 L C T per token (Chowdhery et al. 2022, appendix B)
  double bytes = 0;         ///< for memory-bound steps: bytes to read, parameters of matmuls and caches; otherwise 0
};

/// Returns the names of the training steps: gpt2, gpt2-1024, encoder-decoder, llama-block.
const std::vector<std::string>& step_names();

/// Returns a step by name: one of step_names(), a GPT as "LAYERSxD_MODELxHEADSxVOCABxBATCHxSEQUENCE", or
/// decode-CONTEXT. `dtype`: of parameters and values. Throws UserError [bench_step].
///
/// flops: N counts the parameters that multiply activations, and by convention the position table of a GPT, but no
/// table that is only looked up. L C T is half of the attention's matmuls, which is what a causal mask leaves;
/// attention without such a mask counts twice as much.
StepCase make_step_case(std::string_view name, DType dtype = f32);

/// How a step writes the row of a token to its caches: it selects it in the whole cache, or appends it like
/// nn::KeyValueCache.
enum class CacheWrite : std::uint8_t { select, append };
/// Returns "decode-CONTEXT": one token through GPT-2 124M. The keys and values of up to `context` previous tokens are
/// states of the graph, which it updates; the logits are a state too. The loss is that of the next token.
StepCase gpt2_decode_case(std::int64_t context, CacheWrite write = CacheWrite::select);

}  // namespace lathe::bench
