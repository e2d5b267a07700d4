#pragma once

#include <filesystem>
#include <map>
#include <set>
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
/// For an encoder:
///   logits  input_ids i64 [B, T] -> logits [B, T, vocab]; without an output layer, the states
///   loss    input_ids and labels i64 [B, T] -> loss
///   states  -> last_hidden_state [B, T, hidden];  pooled  -> pooler_output [B, hidden]
/// For an image model:
///   logits  pixel_values [B, channels, height, width] -> logits [B, classes]; without a classifier, the states
///   loss    and labels i64 [B] -> loss
///   states  -> last_hidden_state [B, 1 + patches, hidden];  pooled  -> pooler_output [B, width]
enum class GraphPart { logits, loss, prompt, ragged, step, states, pooled };
/// The enumerators by name.
const std::map<std::string, GraphPart>& graph_parts();

struct PartOptions {
  DType dtype = f32;  ///< compute dtype
  Dim batch = Dim("B");
  std::filesystem::path adapter = {};  ///< adapter for the model; empty: none
  pretrained::LoadOptions load = {};
  /// More inputs i64 [B, T], besides input_ids: "mask" (attention_mask), "positions" (position_ids), "types"
  /// (token_type_ids, of encoders with segments).
  std::set<std::string> inputs = {};
};

/// Splits the list of --inputs: "mask,positions,types". Throws UserError [usage] for any other name.
std::set<std::string> parse_inputs(const std::string& text);

/// Returns the graph of a model's directory, or of an adapter's, for evaluation: without an adapter's dropout.
/// Parameters have the names and dtypes of the files. Throws UserErrors of load_adapted(); [encoder_part] for a part
/// that the model does not have; [usage] for a part or an input that its kind of model does not have.
ir::Graph pretrained_graph(const std::filesystem::path& folder, GraphPart part, const PartOptions& options = {});

/// Returns the weights of a directory, mapped from its files. Throws the same UserErrors.
Parameters pretrained_weights(const std::filesystem::path& folder);

}  // namespace lathe::tools
