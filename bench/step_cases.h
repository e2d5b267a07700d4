#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/initialize.h"
#include "ir/tensor/graph.h"
#include "ir/tensor/interpret/interpreter.h"

/// The whole steps that `lathe bench` and bench_training_step measure.
namespace lathe::bench {

struct StepCase {
  std::string name, what;                                   ///< "gpt2", "GPT-2 124M, 12 layers, ..., B=4 T=64"
  std::vector<std::pair<std::string, std::int64_t>> sizes;  ///< of the model, for peers that build it too
  ir::Graph forward;                                        ///< with the output "loss"
  bool trains = true;                                       ///< or `forward` itself is the step
  std::vector<Initializer> initializers;
  Tensors inputs;
  std::int64_t tokens = 0;  ///< a step
  double flops = 0;         ///< a step: 6 N + 6 L C T a token (Chowdhery et al. 2022, appendix B)
  double bytes = 0;         ///< where memory bounds it: what a step must read, parameters that multiply and caches
};

/// Training steps: gpt2, gpt2-1024, encoder-decoder, llama-block.
const std::vector<std::string>& step_names();

/// One of these, a GPT by its sizes, "LAYERSxD_MODELxHEADSxVOCABxBATCHxSEQUENCE", or decode-CONTEXT. Throws UserError
/// [bench_step].
///
/// flops: N counts the parameters that multiply activations, the positions' table of a GPT with them as is usual, and
/// no table that is only looked up. L C T is half of the attention's products, as a causal mask leaves them;
/// attention without such a mask counts twice as much.
/// `dtype`: of parameters and values.
StepCase make_step_case(std::string_view name, DType dtype = f32);

/// "decode-CONTEXT": one token through GPT-2 124M, whose keys and values of the tokens before it, `context` at most,
/// are states of the graph that it updates; the logits are a state too. The loss is that of the next token.
StepCase gpt2_decode_case(std::int64_t context);

}  // namespace lathe::bench
