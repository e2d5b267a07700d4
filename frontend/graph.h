#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/init.h"
#include "frontend/tensor.h"

namespace lathe {

namespace nn {
class Parameter;
}

namespace detail {

/// What a Graph and its tensors share.
struct GraphState final : ir::GraphBuilder {
  using ir::GraphBuilder::GraphBuilder;
  /// Of each parameter, whether it is frozen, as the modules that declared it say at any time.
  void note_frozen_mark(const std::string& parameter, std::shared_ptr<const bool> is_frozen);
  bool is_frozen(std::string_view parameter) const;

  std::vector<Initializer> initializers;

 private:
  std::map<std::string, std::vector<std::shared_ptr<const bool>>, std::less<>> frozen_marks_;
};

}  // namespace detail

/// A model under construction: inputs, parameters, states, outputs and updates. What the DSL builds is an ir::Graph,
/// of which finish() gives a copy: the Graph and its tensors can be used on after it, and after training_step().
/// Tensors keep alive what they need, so they may outlive the Graph. A copy is the same graph: x.graph() gives that
/// of any tensor. After it was moved from, a Graph can be destroyed or assigned to; any other use throws UserError
/// [graph_moved].
///
///   Dim B{"nbatches"}, S{"n_seq"};
///   Graph g{"mha"};
///   Tensor x = g.input("x", f32, {B, S, 512});
///   g.output("y", linear(x, g.parameter("W", f32, {512, 512})));
class Graph {
 public:
  explicit Graph(std::string_view name);
  Graph(const Graph&) = default;
  Graph& operator=(const Graph&) = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;
  ~Graph() = default;

  /// Arguments. The names of parameters and states are prefixed by the scopes that they stand in:
  /// "encoder.0.self.q.weight". Throws UserError [argument_name] for a name that is taken.
  Tensor input(std::string_view name, DType dtype, const Shape& shape, Where at = Where::current()) const;
  Tensor parameter(std::string_view name, DType dtype, const Shape& shape, const Init& init = Init::automatic(),
                   Where at = Where::current()) const;
  /// Kept between runs, changed by update(): moments, counters. It starts as `init` says.
  Tensor state(std::string_view name, DType dtype, const Shape& shape, const Init& init = Init::zeros(),
               Where at = Where::current()) const;
  /// The state "rng", i64[2] = {seed, step}, from which dropout draws: one for the whole graph, whatever the scope.
  /// It is made on first use, and each run adds 1 to step, so that runs draw different numbers and a checkpoint
  /// resumes the sequence.
  Tensor random_state(Where at = Where::current()) const;

  /// Values from nothing.
  Tensor constant(const Number& value, DType dtype, Where at = Where::current()) const;
  Tensor full(const Shape& shape, const Number& value, DType dtype, Where at = Where::current()) const;
  Tensor literal(const Shape& shape, NumberList values, DType dtype, Where at = Where::current()) const;
  Tensor arange(const Dim& size, DType dtype, Where at = Where::current()) const;          ///< 0, 1, .. size-1
  Tensor dim_value(const Dim& dim, DType dtype = i64, Where at = Where::current()) const;  ///< its size: []
  /// Draws from random_state(): of low <= x < high, where a rounding to the dtype can give high itself, and of the
  /// normal distribution. Every call draws numbers of its own, and so does every run.
  Tensor random_uniform(const Shape& shape, DType dtype, const Uniform& of = {}, Where at = Where::current()) const;
  Tensor random_normal(const Shape& shape, DType dtype, const Normal& of = {}, Where at = Where::current()) const;
  /// bool [rows, columns], true where column <= row + diagonal: tril of ones, from iota.
  Tensor causal_mask(const Dim& rows, const Dim& columns, std::int64_t diagonal = 0,
                     Where at = Where::current()) const;

  /// The parameters, in the order of their declaration: grad(loss, g.parameters()).
  std::vector<Tensor> parameters(Where at = Where::current()) const;

  /// Whether a module froze the parameter of this name: nn::Module::freeze(), before or after it was declared here.
  bool is_frozen(std::string_view parameter, Where at = Where::current()) const {
    return shared(at).is_frozen(parameter);
  }

  void output(std::string_view name, const Tensor& value, Where at = Where::current()) const;
  /// After each run `state` (a state or a parameter) takes `value`.
  void update(const Tensor& state, const Tensor& value, Where at = Where::current()) const;

  /// Names what is built while it lives: scope("encoder"), then scope("0"), give "encoder.0".
  class Scope {
   public:
    Scope(const Graph& graph, std::string_view name, const Where& at);

   private:
    std::shared_ptr<ir::GraphBuilder> graph_;
    ir::GraphBuilder::At at_;
  };
  [[nodiscard]] Scope scope(std::string_view name, Where at = Where::current()) const {
    return Scope(*this, name, at);
  }
  /// "encoder.0"; empty at the top.
  std::string_view scope_path(Where at = Where::current()) const { return builder(at).location().scope(); }
  /// A name in the current scope: "encoder.0.self".
  std::string path(std::string_view name, Where at = Where::current()) const;

  /// How the parameters and states start, in the order of their declaration.
  const std::vector<Initializer>& initializers(Where at = Where::current()) const { return shared(at).initializers; }
  /// Throws UserError [argument_unknown] where there is no such parameter or state.
  void set_initializer(std::string_view argument, const Init& init, Where at = Where::current()) const;

  ir::GraphBuilder& builder(Where at = Where::current()) const { return shared(at); }
  /// The graph so far.
  const ir::Graph& ir(Where at = Where::current()) const { return builder(at).graph(); }
  /// A copy of the graph so far, to compile. More can be built, and finished again.
  ir::Graph finish(Where at = Where::current()) const { return ir(at); }

 private:
  friend class Tensor;
  friend class nn::Parameter;
  explicit Graph(std::shared_ptr<detail::GraphState> state) : state_(std::move(state)) {}
  [[noreturn]] static void throw_moved(const Where& at);
  detail::GraphState& shared(const Where& at) const {
    if (!state_) throw_moved(at);
    return *state_;
  }
  /// A parameter or state of this full name.
  Tensor declared(const ir::Op& op, const std::string& name, DType dtype, const Shape& shape, const Init& init,
                  const Where& at) const;

  std::shared_ptr<detail::GraphState> state_;
};

}  // namespace lathe
