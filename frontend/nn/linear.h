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

/// y = x W^T + b: [.., in] -> [.., out].
class Linear : public Module {
 public:
  Linear(const Module& parent, std::string_view name, const Dim& in, const Dim& out,
         const LinearOptions& options = {}, Where at = Where::current());
  Tensor operator()(const Tensor& x, Where at = Where::current()) const;

  const Parameter& weight() const { return weight_; }
  const std::optional<Parameter>& bias() const { return bias_; }

 private:
  bool in_out_;
  Parameter weight_;
  std::optional<Parameter> bias_;
};

struct EmbeddingOptions {
  DType dtype = f32;
  bool flat = true;  ///< the table is named as the module itself
  Init table = Init::normal(0.02);
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
