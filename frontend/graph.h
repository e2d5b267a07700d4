#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/tensor.h"
#include "ir/options/init.h"

namespace lathe {

namespace nn {
class Module;
class Parameter;
}  // namespace nn

namespace detail {

/// State that a Graph and its tensors share.
struct GraphState final : ir::GraphBuilder {
  using ir::GraphBuilder::GraphBuilder;
  /// Registers a flag of a module that declared the parameter: whether it is frozen. The flag may change later.
  void note_frozen_mark(const std::string& parameter, std::shared_ptr<const bool> is_frozen);
  bool is_frozen(std::string_view parameter) const;

  std::vector<Initializer> initializers;
  /// Of nn::Substitution, innermost last.
  using Substitutions = std::vector<std::function<std::optional<Tensor>(const nn::Parameter&)>>;
  Substitutions substitutions;
  /// In the body of a loop: the input that has the random state of an iteration, if the body draws.
  std::optional<ir::Value> iteration_rng;
  int open_loops = 0;  ///< loops of this graph whose bodies are being built

 private:
  std::map<std::string, std::vector<std::shared_ptr<const bool>>, std::less<>> frozen_marks_;
};

/// Returns the state of a graph, which its copies and tensors share.
std::shared_ptr<GraphState> state_of(const Graph& graph);
/// Returns the state of the graph around all loops whose bodies contain this one. It has all parameters and states.
std::shared_ptr<GraphState> around_loops(const std::shared_ptr<GraphState>& body);

}  // namespace detail

/// A model under construction: inputs, parameters, states, outputs and updates. The DSL builds an ir::Graph, and
/// finish() returns a copy of it. The Graph and its tensors stay usable after finish() and training_step(). Tensors
/// keep alive what they need, so they may outlive the Graph. Copies refer to the same graph; x.graph() returns that
/// of any tensor. A moved-from Graph can only be destroyed or assigned to; any other use throws UserError
/// [graph_moved].
///
///   Dim B{"nbatches"}, S{"n_seq"};
///   Graph g{"mha"};
///   Tensor x = g.input("x", f32, {B, S, 512});
///   g.output("y", linear(x, g.parameter("W", f32, {512, 512})));
class Graph {
 public:
  explicit Graph(std::string_view name);
  /// Continues a complete graph, such as one from ir::parse_graph(). Its values keep their names and ids; its
  /// parameters have no initializers.
  explicit Graph(ir::Graph graph);
  Graph(const Graph&) = default;
  Graph& operator=(const Graph&) = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;
  ~Graph() = default;

  /// Declares an argument. Names of parameters and states are prefixed with the enclosing scopes:
  /// "encoder.0.self.q.weight". Throws UserError [argument_name] for a name that is taken.
  Tensor input(std::string_view name, DType dtype, const Shape& shape, Where at = Where::current()) const;
  Tensor parameter(std::string_view name, DType dtype, const Shape& shape, const Init& init = Init::automatic(),
                   Where at = Where::current()) const;
  /// Declares a value that persists between runs and changes by update(), such as a moment or a counter. `init` is
  /// its initial value.
  Tensor state(std::string_view name, DType dtype, const Shape& shape, const Init& init = Init::zeros(),
               Where at = Where::current()) const;
  /// Returns the state "rng", i64[2] = {seed, step}, which dropout draws from. There is one per graph, regardless of
  /// scope, created on first use. Each run adds 1 to step, so runs draw different numbers and a checkpoint resumes
  /// the sequence. In the body of a loop, each iteration has a seed of its own, computed from that of the graph.
  Tensor random_state(Where at = Where::current()) const;

  /// Values without operands.
  Tensor constant(const Number& value, DType dtype, Where at = Where::current()) const;
  Tensor full(const Shape& shape, const Number& value, DType dtype, Where at = Where::current()) const;
  Tensor literal(const Shape& shape, NumberList values, DType dtype, Where at = Where::current()) const;
  /// Tensors of zeros, of ones, and the identity [size, size].
  Tensor zeros(const Shape& shape, DType dtype, Where at = Where::current()) const {
    return full(shape, 0, dtype, at);
  }
  Tensor ones(const Shape& shape, DType dtype, Where at = Where::current()) const {
    return full(shape, 1, dtype, at);
  }
  Tensor eye(const Dim& size, DType dtype, Where at = Where::current()) const;
  Tensor arange(const Dim& size, DType dtype, Where at = Where::current()) const;          ///< 0, 1, .. size-1
  Tensor dim_value(const Dim& dim, DType dtype = i64, Where at = Where::current()) const;  ///< its size: []
  /// Draw from random_state(): uniformly in low <= x < high, where rounding to the dtype can yield high itself, or
  /// from the normal distribution. Every call and every run draws different numbers.
  Tensor random_uniform(const Shape& shape, DType dtype, const Uniform& of = {}, Where at = Where::current()) const;
  Tensor random_normal(const Shape& shape, DType dtype, const Normal& of = {}, Where at = Where::current()) const;
  /// Returns bool [rows, columns], true where column <= row + diagonal: tril of ones, built from iota.
  Tensor causal_mask(const Dim& rows, const Dim& columns, std::int64_t diagonal = 0,
                     Where at = Where::current()) const;

  /// Returns the parameters in declaration order: grad(loss, g.parameters()).
  std::vector<Tensor> parameters(Where at = Where::current()) const;

  /// Returns whether a module froze the parameter with nn::Module::freeze(), before or after it was declared here.
  bool is_frozen(std::string_view parameter, Where at = Where::current()) const {
    return shared(at).is_frozen(parameter);
  }

  /// Declares a result of each run.
  void output(std::string_view name, const Tensor& value, Where at = Where::current()) const;
  /// Sets `state` (a state or a parameter) to `value` after each run.
  void update(const Tensor& state, const Tensor& value, Where at = Where::current()) const;

  /// Prefixes names while it is alive: scope("encoder") and then scope("0") give "encoder.0".
  class Scope {
   public:
    Scope(const Graph& graph, std::string_view name, const Where& at);

   private:
    std::shared_ptr<ir::GraphBuilder> graph_;
    ir::GraphBuilder::At at_;
  };
  /// Opens a scope until the result is destroyed.
  [[nodiscard]] Scope scope(std::string_view name, Where at = Where::current()) const {
    return Scope(*this, name, at);
  }
  /// Returns the current scope, such as "encoder.0"; empty at the top level.
  std::string_view scope_path(Where at = Where::current()) const { return builder(at).location().scope(); }
  /// Returns a name in the current scope: "encoder.0.self".
  std::string path(std::string_view name, Where at = Where::current()) const;

  /// Initializers of the parameters and states, in declaration order.
  const std::vector<Initializer>& initializers(Where at = Where::current()) const { return shared(at).initializers; }
  /// Throws UserError [argument_unknown] if there is no such parameter or state.
  void set_initializer(std::string_view argument, const Init& init, Where at = Where::current()) const;

  ir::GraphBuilder& builder(Where at = Where::current()) const { return shared(at); }
  /// The graph so far.
  const ir::Graph& ir(Where at = Where::current()) const { return builder(at).graph(); }
  /// Returns a copy of the graph so far, to compile. Building can continue, and finish() can be called again.
  ir::Graph finish(Where at = Where::current()) const;

 private:
  friend class Tensor;
  friend class nn::Parameter;
  friend class nn::Module;
  friend std::shared_ptr<detail::GraphState> detail::state_of(const Graph& graph);
  explicit Graph(std::shared_ptr<detail::GraphState> state) : state_(std::move(state)) {}
  void refuse_in_body(std::string_view what, const Where& at, std::string_view hint) const;
  [[noreturn]] static void throw_moved(const Where& at);
  detail::GraphState& shared(const Where& at) const {
    if (!state_) throw_moved(at);
    return *state_;
  }
  /// Declares a parameter or state by its full name.
  Tensor declared(const ir::Op& op, const std::string& name, DType dtype, const Shape& shape, const Init& init,
                  const Where& at) const;

  std::shared_ptr<detail::GraphState> state_;
};

}  // namespace lathe
