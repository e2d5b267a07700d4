#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "frontend/nn/module.h"
#include "models/pretrained/config/config.h"
#include "runtime/parameters/parameters.h"

namespace lathe {
class TensorFolder;
}  // namespace lathe

namespace lathe::pretrained {

struct TensorNames;

/// The contents of a Hugging Face directory for a model of any kind. The weights stay in their mapped files until
/// they are used.
struct ModelFiles {
  std::filesystem::path folder;
  Config config;
  std::string config_text;  ///< the text of config.json as it was read
  Parameters weights = {};  ///< by the model's names, in the dtypes of the files

  /// A parameter's tensor name in the files, and the file it is in.
  struct Place {
    std::string tensor, file;
  };
  std::map<std::string, Place> places = {};  ///< by the model's names
  /// Other files of the model as they were read, by path in the folder.
  std::map<std::string, std::string> others = {};
};

/// Reads config.json. Throws UserErrors of Config, read_file() and require_model_folder(); [model_folder] if there is
/// no config.json.
ModelFiles read_config(const std::filesystem::path& folder);

/// Returns the text of a file of the model, read into ModelFiles::others; null if there is no such file.
const std::string* read_other(ModelFiles& files, const std::string& path);

/// Whether the files hold both parameters and their dtypes, shapes or bytes differ. Does not read values of tensors
/// that share one place in the files.
bool differ(const TensorFolder& tensors, const std::string& first, const std::string& second,
            const TensorNames& names);

/// Sets a key of config.json, in `files.config` and in the text that save() writes.
void set_config(ModelFiles& files, std::string_view key, std::string_view value);

/// Whether the files hold a parameter under any of its names.
bool has_tensor(const TensorFolder& tensors, const std::string& parameter, const TensorNames& names);

/// Takes the weights of a model's parameters from the tensors of its directory. Throws UserErrors [model_missing],
/// [model_left_over], [model_shape].
void take_weights(ModelFiles& files, const TensorFolder& tensors, const nn::Module& model, const TensorNames& names);

}  // namespace lathe::pretrained
