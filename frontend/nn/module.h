#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/graph.h"
#include "frontend/train/parameter_filter.h"
#include "ir/support/tensors/tensors.h"

/// Modules are named trees of parameters with a call that adds ops. A module belongs to no graph: a call builds in
/// the graph of its argument, so one model can be used in a training graph, a decoding graph, and others later.
///
/// The root gives the dtype of all parameters, unless a module has one of its own.
///
///   models::Gpt model(config);
///   Graph g{"train"};
///   g.output("loss", model.loss(g.input("tokens", i64, {B, T + 1})));
///   Parameters weights(model.initial_values(/*seed=*/1));
namespace lathe::nn {

/// A parameter of a module: its name, type, initializer and training options. Its values are in a store
/// (runtime/parameters/parameters.h). Cheap to copy; copies refer to the same parameter.
class Parameter {
 public:
  /// Path from the root of the tree: "h.0.attn.c_attn.weight".
  const std::string& name() const { return info_->name; }
  DType dtype() const { return info_->dtype; }
  const Shape& shape() const { return info_->shape; }
  const Init& init() const { return info_->init; }

  /// A frozen parameter is not trained: training_step() of a Graph skips it, whatever its options select.
  bool is_frozen() const { return info_->frozen; }
  /// Freezes or unfreezes the parameter.
  void freeze(bool frozen = true) const { info_->frozen = frozen; }
  /// A label by which optimizers select parameters; empty by default.
  const std::string& group() const { return info_->group; }
  /// Sets the label.
  void set_group(std::string_view group) const { info_->group = group; }

  /// Returns the parameter in a graph, or in the graph of a tensor, and declares it there at the first use. Throws
  /// UserError [argument_name] if the graph has another argument of this name.
  Tensor in(const Graph& graph) const;
  Tensor in(const Tensor& like, Where at = Where::current()) const { return in(like.graph(at)); }
  /// Returns the parameter in the graph that is being built: that of its module, or of the current call of a module.
  /// Tensor(parameter) calls it, so a parameter can be written where a function takes a tensor.
  Tensor here(Where at = Where::current()) const;
  /// Returns the parameter cast to the dtype of `like`; storage and compute dtypes may differ.
  Tensor as(const Tensor& like, Where at = Where::current()) const;

  /// Looks up a row of the table for each id: i64 [..] -> [.., d], in the dtype of the table.
  Tensor rows(const Tensor& ids, Where at = Where::current()) const;

  /// Sets the storage dtype. Call it before the first use in a graph.
  void store_as(DType dtype) const { info_->dtype = dtype; }
  /// Stores the matrix, or its transpose, in the format of dequantize() from now on (runtime/parameters/quantize.h):
  /// i8 values under its own name, and under scales_name() one f32 scale per `block` neighbours of a row. as() and
  /// rows() return dequantized values, in() the stored ones. shape() stays that of the matrix. Throws UserError
  /// [quantize_block] unless it is a matrix whose known row length is a multiple of `block`.
  void store_quantized(std::int64_t block, bool transposed = false) const;
  bool is_quantized() const { return info_->block > 0; }
  bool is_transposed() const { return info_->transposed; }  ///< in storage
  std::string scales_name() const { return info_->name + ".scales"; }

 private:
  friend class Module;
  struct Info {
    std::string name;
    DType dtype;
    Shape shape;
    Init init;
    Location loc;
    std::weak_ptr<detail::GraphState> home = {};  ///< of a module in a graph
    bool frozen = false;
    std::string group = {};
    std::int64_t block = 0;  ///< values that share a scale; 0: not quantized
    bool transposed = false;
  };
  Tensor declared(const Graph& graph, const std::string& name, DType dtype, const Shape& shape) const;
  /// Returns the tensor that an nn::Substitution gives the parameter, if any.
  std::optional<Tensor> replaced(const Graph& graph) const;
  Shape stored_shape() const;
  Tensor scales(const Graph& graph) const;
  explicit Parameter(Info info) : info_(std::make_shared<Info>(std::move(info))) {}
  std::shared_ptr<Info> info_;
};

struct LinearState;  // frontend/nn/linear.cpp

/// A node of the tree: its own parameters and its sub-modules, in the order of creation. Cheap to copy; copies refer
/// to the same node. Derive modules with one call from nn::Layer, others from Module.
class Module {
 public:
  /// Creates the root of a tree. `kind` is its name in print_tree(), `dtype` that of the parameters below it.
  explicit Module(std::string_view kind = "Module", DType dtype = f32);
  /// Creates a root in a graph: parameters below it are declared in the graph at once, in its current scope.
  Module(const Graph& graph, DType dtype = f32);  // NOLINT(google-explicit-constructor)
  /// Creates a sub-module. An empty name adds nothing to the names of its parameters. Without a dtype it has that of
  /// its parent.
  Module(const Module& parent, std::string_view name, std::string_view kind, std::optional<DType> dtype = {});

  /// Path from the root: "h.0.attn"; for a root in a graph, its scope.
  const std::string& path() const;
  /// Name within its parent.
  const std::string& name() const;
  const std::string& kind() const;  ///< "Linear": its name in print_tree()
  DType dtype() const;              ///< of its parameters, unless they are declared with another one
  const std::vector<Module>& children() const;
  const std::vector<Parameter>& own_parameters() const;
  /// Returns all parameters of the subtree in declaration order.
  std::vector<Parameter> parameters() const;
  /// Returns a parameter by its path from the root. Throws UserError [parameter_unknown].
  Parameter parameter(std::string_view name) const;

  /// Freezes or unfreezes all parameters of the subtree.
  void freeze(bool frozen = true) const;
  /// Sets the group of all parameters of the subtree.
  void set_group(std::string_view group) const;
  /// Returns the number of elements of all parameters in the subtree. Throws UserError [dim_unbound] if a size is
  /// unknown.
  std::int64_t count() const;
  /// Returns the initializers of all parameters by name, as initial_values() of a graph takes them.
  std::vector<Initializer> initializers() const;
  /// Returns the initial values of all parameters, for a store. See initial_value() in frontend/initial_values.h.
  Tensors initial_values(std::uint64_t seed) const;
  /// Returns the tree as text: kinds, names, shapes, counts. Equal neighbours are printed once.
  std::string print_tree() const;

 protected:
  /// Declares a parameter of this module, named below its path; an empty name is the path itself. Throws UserError
  /// [parameter_name] for a name that the tree has already.
  Parameter declare(std::string_view name, DType dtype, const Shape& shape, const Init& init, const Where& at);
  /// The same in the dtype of the module.
  Parameter declare(std::string_view name, const Shape& shape, const Init& init = Init::automatic(),
                    Where at = Where::current()) {
    return declare(name, dtype(), shape, init, at);
  }
  /// While alive, ops are in the scope of the module, so that dumps, profiles and errors name it, and its parameters
  /// are usable as tensors. nn::Layer opens one for each call. For functions of another form:
  ///
  ///   struct Scale : nn::Module {
  ///     Scale(const Module& parent) : Module(parent, "scale", "Scale"), factor(declare("factor", {})) {}
  ///     Tensor loss(const Tensor& x) const {
  ///       const Scope scope(*this, x);
  ///       return (x * factor).sum();
  ///     }
  ///     nn::Parameter factor;
  ///   };
  class Scope {
   public:
    Scope(const Module& module, const Graph& graph, Where at = Where::current());
    Scope(const Module& module, const Tensor& like, Where at = Where::current())
        : Scope(module, like.graph(at), at) {}
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    std::shared_ptr<detail::GraphState> graph_;
    ir::GraphBuilder::At at_;
  };
  /// Removes a sub-module from the tree, and the names of its parameters with it. The sub-module itself is unchanged.
  void remove(const Module& child) const;

 private:
  friend class Linear;
  struct Node;
  /// State that a Linear shares with its copies; null for other kinds of nodes.
  const std::shared_ptr<LinearState>& linear_state() const;
  void set_linear_state(std::shared_ptr<LinearState> state) const;

  std::shared_ptr<Node> node_;
};

/// A module that is called like a function: layer(x, ..) returns Derived::forward(x, ..), whose ops are in the scope
/// of the module, at the lines of forward().
///
///   struct Mlp : nn::Layer<Mlp> {
///     Mlp(const Module& parent, std::string_view name, const Dim& d)
///         : Layer(parent, name, "Mlp"), up(*this, "up", d, d * 4), down(*this, "down", d * 4, d) {}
///     Tensor forward(const Tensor& x) const { return down(relu(up(x))); }
///     nn::Linear up, down;
///   };
template <class Derived>
class Layer : public Module {
 public:
  using Module::Module;

  template <class... Others>
  auto operator()(const Operand& x, Others&&... others) const {
    const Scope scope(*this, x.tensor, x.at);
    return static_cast<const Derived&>(*this).forward(x.tensor, std::forward<Others>(others)...);
  }
};

/// Selects the unfrozen parameters of a module, for TrainingOptions::trainable of a finished graph, which has no
/// modules.
ParameterFilter trainable(const Module& module);
/// Selects the parameters of a module that are in a group.
ParameterFilter in_group(const Module& module, std::string_view group);
/// Selects the parameters of a module by name, such as for Parameters::save(), without the states of optimizers.
std::function<bool(std::string_view)> parameters_of(const Module& module);

}  // namespace lathe::nn
