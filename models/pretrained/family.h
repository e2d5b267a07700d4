#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "models/pretrained/config/config.h"
#include "models/pretrained/config/key_table.h"

namespace lathe::pretrained {

/// The tensor names in a family's files, where they differ from the model's parameter names.
struct TensorNames {
  /// Tensors that the model does not need: names, or suffixes after a '*', or prefixes before one.
  std::vector<std::string> ignored = {};
  std::string prefix = {};  ///< prefix that some files omit
  /// Suffixes of names and their replacements in other files: {".LayerNorm.weight", ".LayerNorm.gamma"}.
  std::vector<std::pair<std::string, std::string>> others = {};
};

struct CausalLmOptions;
struct EncoderOptions;
struct ImageModelOptions;
class Seq2SeqLm;

/// Whether the files hold both tensors and their values differ.
using Differ = std::function<bool(const std::string& first, const std::string& second)>;

// The model that a configuration describes, for each kind of model. The configuration has the keys of the family's
// table with their defaults.
using DescribeCausalLm = CausalLmOptions (*)(const Config& config);
using DescribeEncoder = EncoderOptions (*)(const Config& config);
using MakeSeq2SeqLm = std::unique_ptr<Seq2SeqLm> (*)(const Config& config, const Differ& differ);
using DescribeImageModel = ImageModelOptions (*)(const Config& config);

/// The record of a model family, which its file in families/ exports. families.def lists all families.
struct Family {
  std::vector<std::string_view> model_types;  ///< values of "model_type"
  KeyTable keys;                              ///< a rule for each key of config.json, with the defaults
  std::variant<DescribeCausalLm, DescribeEncoder, MakeSeq2SeqLm, DescribeImageModel> make;
  TensorNames names = {};
  /// rope_parameters may have the keys "full_attention" and "sliding_attention": one object per kind of layer.
  bool has_ropes_by_layer = false;
};

}  // namespace lathe::pretrained
