#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "frontend/pretrained/pretrained.h"
#include "ir/support/dtype.h"
#include "ir/tensor/graph.h"

/// Models in Hugging Face's directories as graphs for every command.
namespace lathe::tools {

/// Whether a path names a directory with a config.json.
bool is_model_folder(const std::filesystem::path& path);

/// What is made of a causal language model:
///   logits  input_ids i64 [B, T] -> logits [B, T, vocab]
///   loss    the same with labels i64 [B, T] -> loss
///   prompt, ragged, step   those of CachedLm, with the cache of keys and values as states
enum class GraphPart { logits, loss, prompt, ragged, step };
/// By their names.
const std::map<std::string, GraphPart>& graph_parts();

/// Parameters have the names and dtypes that the files have. UserErrors of pretrained::load.
ir::Graph pretrained_graph(const pretrained::Pretrained& model, GraphPart part, DType dtype);

}  // namespace lathe::tools
