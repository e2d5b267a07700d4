#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "ir/support/dtype.h"
#include "ir/tensor/graph.h"
#include "models/pretrained/pretrained.h"
#include "runtime/parameters/parameters.h"

/// Graphs of Hugging Face models for all commands.
namespace lathe::tools {

/// Returns whether a path is a model: a directory or a GGUF file. Loading a directory that contains neither a model
/// nor an adapter throws UserError [model_folder], which names the kind of path.
bool is_model_folder(const std::filesystem::path& path);

/// Graphs of a language model. For a decoder-only model:
///   logits  input_ids i64 [B, T] -> logits [B, T, vocab]
///   loss    input_ids and labels i64 [B, T] -> loss
///   prompt, ragged, step   the graphs of CachedLm, with the KV cache as states
/// For an encoder-decoder model:
///   logits  input_ids i64 [B, S], decoder_input_ids i64 [B, T] -> logits [B, T, vocab]
///   loss    input_ids i64 [B, S], labels i64 [B, T] -> loss
///   prompt, ragged, step   the graphs of CachedSeq2Seq: encode, encode with a mask, step
enum class GraphPart { logits, loss, prompt, ragged, step };
/// The enumerators by name.
const std::map<std::string, GraphPart>& graph_parts();

struct PartOptions {
  DType dtype = f32;  ///< compute dtype
  Dim batch = Dim("B");
  std::filesystem::path adapter = {};  ///< adapter for the model; empty: none
  pretrained::LoadOptions load = {};
};

/// Returns the graph of a language model's directory, or of an adapter's, for evaluation: without an adapter's
/// dropout. Parameters have the names and dtypes of the files. Throws UserErrors of with_language_model().
ir::Graph pretrained_graph(const std::filesystem::path& folder, GraphPart part, const PartOptions& options = {});

/// Returns the weights of a directory, mapped from its files. Throws the same UserErrors.
Parameters pretrained_weights(const std::filesystem::path& folder);

}  // namespace lathe::tools
