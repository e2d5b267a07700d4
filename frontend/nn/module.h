#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/graph.h"
#include "frontend/train/optim.h"
#include "ir/support/tensors/tensors.h"

/// Modules: named trees of parameters, with a call that adds ops. A module belongs to no graph: called on a tensor,
/// it builds in that tensor's graph, so one model serves a graph for training, another for decoding, and any later
/// one.
///
///   models::Gpt model(config);
///   Graph g{"train"};
///   g.output("loss", model.loss(g.input("tokens", i64, {B, T + 1})));
///   Parameters weights(model.initial_values(/*seed=*/1));
namespace lathe::nn {

/// A parameter of a module: its name and type, how it starts, and what training does with it. Its values are
/// elsewhere, in a store (runtime/parameters/parameters.h). Cheap to copy; copies are the same parameter.
class Parameter {
 public:
  /// From the root of its tree: "h.0.attn.c_attn.weight".
  const std::string& name() const { return info_->name; }
  DType dtype() const { return info_->dtype; }
  const Shape& shape() const { return info_->shape; }
  const Init& init() const { return info_->init; }

  /// A frozen parameter is not trained: training_step() of a Graph leaves it alone, whatever its options choose.
  bool is_frozen() const { return info_->frozen; }
  void freeze(bool frozen = true) const { info_->frozen = frozen; }
  /// A word that optimizers choose parameters by; empty at first.
  const std::string& group() const { return info_->group; }
  void set_group(std::string_view group) const { info_->group = group; }

  /// The parameter in a graph, or in the graph of a tensor: declared there at the first use. UserError
  /// [argument_name] where the graph has another argument of this name.
  Tensor in(const Graph& graph) const;
  Tensor in(const Tensor& like, Where at = Where::current()) const { return in(like.graph(at)); }
  /// The same in the dtype of `like`: weights may be stored in another one than is computed in.
  Tensor as(const Tensor& like, Where at = Where::current()) const;

  /// Rows of a table, for each id: i64 [..] -> [.., d], in the dtype of the table.
  Tensor rows(const Tensor& ids, Where at = Where::current()) const;

  /// Another dtype to store it in, before it is first used in a graph.
  void store_as(DType dtype) const { info_->dtype = dtype; }
  /// From now on a matrix, or its transpose, is stored as dequantize() takes it (runtime/parameters/quantize.h): i8
  /// numbers under its own name, and f32 scales, one for each `block` neighbours of a row, under scales_name(). as()
  /// and rows() give what it stands for; in() the numbers as they are stored. The shape stays that of the matrix.
  /// UserError [quantize_block] for what is no matrix of known rows that are blocks.
  void store_quantized(std::int64_t block, bool transposed = false) const;
  bool is_quantized() const { return info_->block > 0; }
  bool is_transposed() const { return info_->transposed; }  ///< as it is stored
  std::string scales_name() const { return info_->name + ".scales"; }

 private:
  friend class Module;
  struct Info {
    std::string name;
    DType dtype;
    Shape shape;
    Init init;
    Location loc;
    bool frozen = false;
    std::string group = {};
    std::int64_t block = 0;  ///< quantized: that share a scale
    bool transposed = false;
  };
  Tensor declared(const Graph& graph, const std::string& name, DType dtype, const Shape& shape) const;
  Shape stored_shape() const;
  Tensor scales(const Graph& graph) const;
  explicit Parameter(Info info) : info_(std::make_shared<Info>(std::move(info))) {}
  std::shared_ptr<Info> info_;
};

struct LinearState;  // frontend/nn/linear.cpp

/// A node of the tree: its own parameters and its sub-modules, in the order in which they were made. Cheap to copy;
/// copies are the same node. Modules of a user's own derive from it:
///
///   struct Mlp : nn::Module {
///     Mlp(const Module& parent, std::string_view name, const Dim& d)
///         : Module(parent, name, "Mlp"), up(*this, "up", d, d * 4), down(*this, "down", d * 4, d) {}
///     Tensor operator()(const Tensor& x) const { return down(relu(up(x))); }
///     nn::Linear up, down;
///   };
class Module {
 public:
  /// The root of a tree, which names what it is for print_tree().
  explicit Module(std::string_view kind = "Module");
  /// A root within a graph: what is declared below it is declared in the graph at once, in its present scope.
  Module(const Graph& graph);  // NOLINT(google-explicit-constructor)
  /// A sub-module. An empty name adds nothing to the names of its parameters.
  Module(const Module& parent, std::string_view name, std::string_view kind);

  /// From the root: "h.0.attn"; of a root within a graph, its scope.
  const std::string& path() const;
  /// What its parent calls it.
  const std::string& name() const;
  const std::string& kind() const;
  const std::vector<Module>& children() const;
  const std::vector<Parameter>& own_parameters() const;
  /// All of the tree below, in the order of declaration.
  std::vector<Parameter> parameters() const;
  /// By its name from the root. UserError [parameter_unknown].
  Parameter parameter(std::string_view name) const;

  /// Freezes all parameters below, or lets them be trained again.
  void freeze(bool frozen = true) const;
  void set_group(std::string_view group) const;
  /// How many numbers all parameters below hold. UserError [dim_unbound] where a size is not known.
  std::int64_t count() const;
  /// How all of them start, by name: what initial_values() of a whole graph takes.
  std::vector<Initializer> initializers() const;
  /// How all of them start: the values for a store. See initial_value() in frontend/initialize.h.
  Tensors initial_values(std::uint64_t seed) const;
  /// The tree as text: kinds, names, shapes, counts; neighbours that are alike are printed once.
  std::string print_tree() const;

 protected:
  /// A parameter of its own, named below the module's path; an empty name is the path itself. UserError
  /// [parameter_name] for a name that the tree has already.
  Parameter declare(std::string_view name, DType dtype, const Shape& shape, const Init& init, const Where& at);
  /// Takes a sub-module out of the tree, and with it the names of its parameters. The sub-module itself stays as it
  /// is.
  void remove(const Module& child) const;

 private:
  friend class Linear;
  struct Node;
  /// What a Linear shares with its copies; null in nodes of other kinds.
  const std::shared_ptr<LinearState>& linear_state() const;
  void set_linear_state(std::shared_ptr<LinearState> state) const;

  std::shared_ptr<Node> node_;
};

/// The parameters of a module that are not frozen: for TrainingOptions::trainable of a finished graph, which knows no
/// modules.
ParameterFilter trainable(const Module& module);
/// The parameters of a module that are in a group.
ParameterFilter in_group(const Module& module, std::string_view group);

}  // namespace lathe::nn
