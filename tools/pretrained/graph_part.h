#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "frontend/pretrained/pretrained.h"
#include "ir/support/dtype.h"
#include "ir/tensor/graph.h"
#include "runtime/parameters/parameters.h"

/// Models in Hugging Face's directories as graphs for every command.
namespace lathe::tools {

/// Whether a path is read as a model: a directory, or a GGUF file. Reading one that is not the directory of a model
/// or of an adapter is UserError [model_folder], which says what it is.
bool is_model_folder(const std::filesystem::path& path);

/// What is made of a language model, of a decoder alone
///   logits  input_ids i64 [B, T] -> logits [B, T, vocab]
///   loss    the same with labels i64 [B, T] -> loss
///   prompt, ragged, step   those of CachedLm, with the cache of keys and values as states
/// or of an encoder and a decoder
///   logits  input_ids i64 [B, S], decoder_input_ids i64 [B, T] -> logits [B, T, vocab]
///   loss    input_ids i64 [B, S], labels i64 [B, T] -> loss
///   prompt, ragged, step   those of CachedSeq2Seq: its encode, the same with a mask, its step
enum class GraphPart { logits, loss, prompt, ragged, step };
/// By their names.
const std::map<std::string, GraphPart>& graph_parts();

struct PartOptions {
  DType dtype = f32;  ///< to compute in
  Dim batch = Dim("B");
  std::filesystem::path adapter = {};  ///< on the model; empty: none
  pretrained::LoadOptions load = {};
};

/// The graph of a directory as load_adapted() and load_seq2seq_lm() take it, for evaluation: the dropout of an
/// adapter is left out. Parameters have the names and dtypes that the files have. UserErrors of these two.
ir::Graph pretrained_graph(const std::filesystem::path& folder, GraphPart part, const PartOptions& options = {});

/// The weights of a directory, where they lie in its files. UserErrors likewise.
Parameters pretrained_weights(const std::filesystem::path& folder);

}  // namespace lathe::tools
