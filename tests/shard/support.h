#pragma once

#include <string>
#include <string_view>

#include "frontend/train/training.h"
#include "passes/program/program.h"
#include "passes/shard/predict/step_rates.h"
#include "passes/shard/simulate.h"
#include "tests/support/graphs/divisible_steps.h"

/// Shared code of the sharding tests.
namespace lathe::shard::test {

/// How models are sharded along an axis "model".
inline const std::string by_model = "h:model,d_ff:model,vocab:model";

/// Calls shard() with mesh and splits as text. Checks that the result verifies and round-trips through text.
Sharded divided(const ir::Graph& graph, std::string_view mesh, std::string_view splits,
                const ShardOptions& options = {});

/// Returns the label of the UserError that shard() throws; "" for none.
std::string error_label(const ir::Graph& graph, std::string_view mesh, std::string_view splits);
std::string error_text(const ir::Graph& graph, std::string_view mesh, std::string_view splits);

/// Training steps with AdamW, and dropout if the model has it: one or more layers of width 16.
ir::Graph gpt_step(int layers, double dropout, double clip_norm = 0, DType dtype = f64);
ir::Graph llama_step(int layers, double clip_norm = 0, DType dtype = f64);

/// A training step of one layer with these options. Parameters are f64, or f32 for mixed precision.
ir::Graph gpt_step(const Optimizer& optimizer, const TrainingOptions& options);

using lathe::test::step_arguments;

/// Runs `steps` steps on one process and on all processes of a mesh, each from its own results. Returns the largest
/// difference of any output or updated value in any step, or only of outputs.
enum class Compared { all, outputs };
double training_difference(const ir::Graph& step, const Sharded& sharded, Tensors arguments, int steps,
                           Compared compared = Compared::all);

/// The program of one process on a CPU.
Program program_of(const ir::Graph& sharded);

/// Two matmuls of 2 * 8 * 16 * 4 = 1024 operations each, and all_reduces of their 32 elements (128 bytes) among 4
/// ranks.
ir::Graph two_products();
/// 192 bytes and half a message per second.
StepRates slow_network();

/// Counts the nodes of an op whose type prints as `type`; all of them for "".
int count(const ir::Graph& graph, std::string_view op, std::string_view type = "");

}  // namespace lathe::shard::test
