#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/init.h"
#include "frontend/tensor.h"

namespace lathe {

/// A model under construction: inputs, parameters, states, outputs and updates. What the DSL builds is an ir::Graph,
/// of which finish() gives a copy: the Graph and its tensors can be used on after it, and after training_step().
/// Tensors keep alive what they need, so they may outlive the Graph. After it was moved from, a Graph can be
/// destroyed or assigned to; any other use throws UserError [graph_moved].
///
///   Dim B{"nbatches"}, S{"n_seq"};
///   Graph g{"mha"};
///   Tensor x = g.input("x", f32, {B, S, 512});
///   g.output("y", linear(x, g.parameter("W", f32, {512, 512})));
class Graph {
 public:
  explicit Graph(std::string_view name);
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;
  ~Graph() = default;

  /// Arguments. The names of parameters and states are prefixed by the scopes that they stand in:
  /// "encoder.0.self.q.weight". Throws UserError [argument_name] for a name that is taken.
  Tensor input(std::string_view name, DType dtype, const Shape& shape, Where at = Where::current());
  Tensor parameter(std::string_view name, DType dtype, const Shape& shape, const Init& init = Init::automatic(),
                   Where at = Where::current());
  /// Kept between runs, changed by update(): moments, counters. It starts as `init` says.
  Tensor state(std::string_view name, DType dtype, const Shape& shape, const Init& init = Init::zeros(),
               Where at = Where::current());
  /// The state "rng", i64[2] = {seed, step}, from which dropout draws: one for the whole graph, whatever the scope.
  /// It is made on first use, and each run adds 1 to step, so that runs draw different numbers and a checkpoint
  /// resumes the sequence.
  Tensor random_state(Where at = Where::current());

  /// Values from nothing.
  Tensor constant(double value, DType dtype, Where at = Where::current());
  Tensor full(const Shape& shape, double value, DType dtype, Where at = Where::current());
  Tensor literal(const Shape& shape, std::vector<double> values, DType dtype, Where at = Where::current());
  Tensor arange(const Dim& size, DType dtype, Where at = Where::current());  ///< 0, 1, .. size-1
  /// bool [rows, columns], true where column <= row + diagonal: tril of ones, from iota.
  Tensor causal_mask(const Dim& rows, const Dim& columns, std::int64_t diagonal = 0, Where at = Where::current());

  void output(std::string_view name, const Tensor& value, Where at = Where::current());
  /// After each run `state` (a state or a parameter) takes `value`.
  void update(const Tensor& state, const Tensor& value, Where at = Where::current());

  /// Names what is built while it lives: scope("encoder"), then scope("0"), give "encoder.0".
  class Scope {
   public:
    Scope(Graph& graph, std::string_view name, const Where& at);

   private:
    std::shared_ptr<ir::GraphBuilder> graph_;
    ir::GraphBuilder::At at_;
  };
  [[nodiscard]] Scope scope(std::string_view name, Where at = Where::current()) { return Scope(*this, name, at); }
  /// "encoder.0"; empty at the top.
  std::string_view scope_path(Where at = Where::current()) const { return builder(at).location().scope(); }
  /// A name in the current scope: "encoder.0.self".
  std::string path(std::string_view name, Where at = Where::current()) const;

  /// How the parameters and states start, in the order of their declaration.
  const std::vector<Initializer>& initializers() const { return initializers_; }
  /// Throws UserError [argument_unknown] where there is no such parameter or state.
  void set_initializer(std::string_view argument, const Init& init, Where at = Where::current());

  ir::GraphBuilder& builder(Where at = Where::current()) const {
    if (!builder_) throw_moved(at);
    return *builder_;
  }
  /// The graph so far.
  const ir::Graph& ir(Where at = Where::current()) const { return builder(at).graph(); }
  /// A copy of the graph so far, to compile. More can be built, and finished again.
  ir::Graph finish(Where at = Where::current()) const { return ir(at); }

 private:
  [[noreturn]] static void throw_moved(const Where& at);
  /// A parameter or state of this full name.
  Tensor declared(const ir::Op& op, const std::string& name, DType dtype, const Shape& shape, const Init& init,
                  const Where& at);

  std::shared_ptr<ir::GraphBuilder> builder_;
  std::vector<Initializer> initializers_;
  std::optional<Tensor> random_state_;
};

}  // namespace lathe
