#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "models/pretrained/causal_lm.h"
#include "models/pretrained/model_files.h"
#include "models/pretrained/quantize_weights.h"

namespace lathe {
class FolderSave;
}  // namespace lathe

namespace lathe::pretrained {

/// A model of some kind, loaded from a Hugging Face directory.
template <class Model>
struct PretrainedModel : ModelFiles {
  std::unique_ptr<Model> model;
};

/// A decoder-only language model.
using Pretrained = PretrainedModel<CausalLm>;

struct LoadOptions {
  WeightFormat weights = WeightFormat::stored;
};

/// Reads config.json and the tensors of a directory. Model is CausalLm, Seq2SeqLm (seq2seq/seq2seq_lm.h), Encoder,
/// SentenceEncoder (encoders/) or ImageModel (image_models/image_model.h):
///
///   auto llama = pretrained::load_pretrained<pretrained::CausalLm>("Llama-3.2-1B");
///   Graph g{"logits"};
///   const Tensor ids = g.input("input_ids", i64, {Dim("B"), Dim("T")});
///   g.output("logits", llama.model->logits({.ids = ids}));
///   Executable exe = compile(g.finish(), {.parameters = llama.weights});
///
/// The files decide which tables a model shares: an output layer whose values differ from the embeddings gets its own
/// table, as in transformers, and tie_word_embeddings becomes false in the result. Likewise T5's encoder and decoder.
/// "architectures" decides whether an encoder has the output layer of a masked language model, and an image model a
/// classifier.
///
/// Throws UserErrors of Config and TensorFolder; [config_value] for a model of another kind, an unknown family or
/// option; [model_missing] for tensors that the files lack, [model_left_over] for tensors that the model does not
/// use, [model_shape] for a shape mismatch, each with file, tensor and shapes; those of quantize_weights().
template <class Model>
PretrainedModel<Model> load_pretrained(const std::filesystem::path& folder, const LoadOptions& options = {});

/// Writes the directory of a model of any kind: config.json and its other files as they were read, and the current
/// weights, under their original names and in their original files. Creates the folder if needed. The save is one
/// transaction (FolderSave). Throws UserErrors of FolderSave, [quantized_weights] for a model that was loaded
/// quantized.
void save(const ModelFiles& files, const std::filesystem::path& folder);

/// Returns the names of the files that add_files() adds.
std::vector<std::string> files_written(const ModelFiles& files);
/// Adds the model's files to a save. Throws UserErrors of write_safetensors(), [file_write], [quantized_weights].
void add_files(FolderSave& save, const ModelFiles& files);

/// Returns the files in a folder that the loader of a model or an adapter would read, except those of the tokenizer.
std::vector<std::string> model_files_in(const std::filesystem::path& folder);

}  // namespace lathe::pretrained
