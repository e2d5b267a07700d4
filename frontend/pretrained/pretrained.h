#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "frontend/pretrained/causal_lm.h"
#include "frontend/pretrained/config.h"
#include "runtime/parameters/parameters.h"

namespace lathe::pretrained {

/// A language model as a Hugging Face directory holds it. The weights stay in their files, mapped, until they are
/// used.
struct Pretrained {
  std::filesystem::path folder;
  Config config;
  std::string config_text;  ///< config.json as it was read
  std::unique_ptr<CausalLm> model;
  Parameters weights;  ///< by the model's names, in the dtypes of the files

  /// What a parameter is called in the files, and in which.
  struct Place {
    std::string tensor, file;
  };
  std::map<std::string, Place> places = {};  ///< by the model's names
};

/// Reads config.json and the tensors of a directory:
///
///   auto llama = pretrained::load("Llama-3.2-1B");
///   Graph g{"logits"};
///   const Tensor ids = g.input("input_ids", i64, {Dim("B"), Dim("T")});
///   g.output("logits", llama.model->logits({.ids = ids}));
///   Executable exe = compile(g.finish(), {.parameters = llama.weights});
///
/// UserErrors: those of Config and TensorFolder; [model_missing] for tensors that the files lack, [model_left_over]
/// for tensors that the model has no use for, [model_shape] where a shape differs, each naming file, tensor and
/// shapes.
Pretrained load(const std::filesystem::path& folder);

/// Writes the directory anew: config.json as it was read, the weights as they are now, under the names and in the
/// files that they came from. The folder is made where it is missing. UserErrors of write_tensor_folder.
void save(const Pretrained& pretrained, const std::filesystem::path& folder);

}  // namespace lathe::pretrained
