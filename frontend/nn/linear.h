#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "frontend/nn/module.h"

/// Modules of one layer. A module's parameters are named by its parents' names and its own: nn::Linear(self, "q", ..)
/// of a parent "encoder.0.self" declares "encoder.0.self.q.weight". Errors in a module name the line that called it.
namespace lathe::nn {

struct LinearOptions {
  DType dtype = f32;
  bool bias = true;
  bool in_out = false;  ///< the weight is [in, out], as GPT-2 stores it, instead of [out, in]
  bool flat = false;    ///< the weight is named as the module itself: "q_proj" instead of "q_proj.weight"
  Init weight = Init::automatic();
};

class LowRank;
struct LowRankOptions;

/// x W^T + b of a weight [out, in], or x W + b of one [in, out]: [.., in] -> [.., out], in the dtype of x. Quantized
/// weights are rounded to it, but multiply up to 4 rows, where the graph knows how many there are, in f32 at least.
Tensor project(const Tensor& x, const Parameter& weight, const std::optional<Parameter>& bias = {},
               bool in_out = false, Where at = Where::current());

/// y = x W^T + b: [.., in] -> [.., out]. Copies are the same layer.
class Linear : public Module {
 public:
  Linear(const Module& parent, std::string_view name, const Dim& in, const Dim& out,
         const LinearOptions& options = {}, Where at = Where::current());
  /// The linear layer that a node of a tree is; nothing where it is another module.
  static std::optional<Linear> of(const Module& node);

  Tensor operator()(const Tensor& x, Where at = Where::current()) const;

  const Parameter& weight() const;  ///< [out, in], or [in, out]
  const std::optional<Parameter>& bias() const;
  bool in_out() const;  ///< the weight is [in, out]
  Dim in() const;
  Dim out() const;

  /// Adds a low-rank adapter to what the layer gives (frontend/nn/low_rank.h), in every graph that is built from now
  /// on: a sub-module with the parameters "lora_A.weight" and "lora_B.weight" below the layer's path. UserError
  /// [parameter_name] where it has one already.
  const LowRank& add_low_rank(const LowRankOptions& options, Where at = Where::current()) const;
  /// The adapter; null where there is none.
  const LowRank* low_rank() const;
  /// Takes the adapter off the layer, and its parameters out of the tree.
  void remove_low_rank() const;

 private:
  explicit Linear(const Module& node) : Module(node) {}
};

struct EmbeddingOptions {
  DType dtype = f32;
  bool flat = true;  ///< the table is named as the module itself
  Init table = Init::normal({.deviation = 0.02});
};

/// A row of the table for each id: i64 [..] -> [.., d].
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
