#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "frontend/nn/module.h"

/// Modules with a single layer. A parameter's name is its modules' names and its own: nn::Linear(self, "q", ..) in a
/// parent "encoder.0.self" declares "encoder.0.self.q.weight". Errors in a module name the line that called it.
namespace lathe::nn {

struct LinearOptions {
  std::optional<DType> dtype = {};  ///< of the parameters; default: that of the parent
  bool bias = true;
  bool in_out = false;  ///< the weight is [in, out], as GPT-2 stores it, instead of [out, in]
  bool flat = false;    ///< the weight is named after the module: "q_proj" instead of "q_proj.weight"
  Init weight = Init::automatic();
};

class LowRank;
struct LowRankOptions;

/// Returns x W^T + b for a weight [out, in], or x W + b for [in, out]: [.., in] -> [.., out], in the dtype of x.
/// Quantized weights are rounded to that dtype. For up to 4 rows, if the graph knows their number, the product is
/// computed in at least f32.
Tensor project(const Tensor& x, const Parameter& weight, const std::optional<Parameter>& bias = {},
               bool in_out = false, Where at = Where::current());

/// y = x W^T + b: [.., in] -> [.., out]. Copies refer to the same layer.
class Linear : public Module {
 public:
  Linear(const Module& parent, std::string_view name, const Dim& in, const Dim& out,
         const LinearOptions& options = {}, Where at = Where::current());
  /// Returns the Linear of a tree node; nothing if the node is another module.
  static std::optional<Linear> of(const Module& node);

  Tensor operator()(const Tensor& x, Where at = Where::current()) const;

  const Parameter& weight() const;  ///< [out, in], or [in, out]
  const std::optional<Parameter>& bias() const;
  bool in_out() const;  ///< the weight is [in, out]
  Dim in() const;
  Dim out() const;

  /// Adds a low-rank adapter to the output of the layer (frontend/nn/low_rank.h) in every graph built afterwards. The
  /// adapter is a sub-module with the parameters "lora_A.weight" and "lora_B.weight" below the layer's path. Throws
  /// UserError [parameter_name] if there is an adapter already.
  const LowRank& add_low_rank(const LowRankOptions& options, Where at = Where::current()) const;
  /// The adapter, or null.
  const LowRank* low_rank() const;
  /// Removes the adapter from the layer, and its parameters from the tree.
  void remove_low_rank() const;

 private:
  explicit Linear(const Module& node) : Module(node) {}
};

struct EmbeddingOptions {
  std::optional<DType> dtype = {};  ///< of the parameters; default: that of the parent
  bool flat = true;                 ///< the table is named after the module
  Init table = Init::normal({.deviation = 0.02});
};

/// Looks up a table row for each id: i64 [..] -> [.., d].
class Embedding : public Module {
 public:
  Embedding(const Module& parent, std::string_view name, const Dim& count, const Dim& d,
            const EmbeddingOptions& options = {}, Where at = Where::current());
  Tensor operator()(const Tensor& ids, Where at = Where::current()) const;
  const Parameter& table() const { return table_; }  ///< [count, d]

 private:
  Parameter table_;
};

}  // namespace lathe::nn
