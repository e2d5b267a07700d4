#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/tensor.h"

/// Loops. The body of a loop is a function that builds one iteration. It is called once, and the loop becomes one op
/// with a graph inside, so the time to compile does not depend on the number of iterations. The body may use any
/// tensor of the graph around the loop, and parameters of modules. Loops have gradients, also with respect to these
/// tensors, and they nest.
///
///   // A running mean with decay: h[t] = 0.9 h[t-1] + 0.1 x[t], for x: f32[T, B]
///   auto [last, all] = scan(g.zeros({B}, f32), x, [](const Tensor& h, const Tensor& x_t) {
///     const Tensor next = h * 0.9 + x_t * 0.1;
///     return std::pair(next, next);
///   });
namespace lathe {

/// The values that the body returns.
struct LoopStep {
  std::vector<Tensor> carries;       ///< the next values of the carries, with their dtypes and shapes
  std::vector<Tensor> outputs = {};  ///< values of this iteration to keep
};

/// The results of a loop.
struct LoopResults {
  std::vector<Tensor> carries;  ///< the values after the last iteration; the first ones if there is no iteration
  std::vector<Tensor> outputs;  ///< each stacked along a new first dim: [iterations, ..]
};

struct LoopOptions {
  /// The name of the body in dumps.
  std::string_view name = "step";
  /// Start with the last elements of the sequences. Outputs keep the index of the elements they were computed from.
  bool reverse = false;
  /// For the gradient, keep the carries of every this many iterations alone, and compute the iterations between them
  /// again, in place of keeping the values of all iterations. With the square root of their number, memory grows with
  /// that root. 0: keep all values.
  std::int64_t checkpoint_every = 0;
};

using ScanBody = std::function<LoopStep(std::span<const Tensor> carries, std::span<const Tensor> elements)>;
using RepeatBody = std::function<LoopStep(std::span<const Tensor> carries, const Tensor& index)>;

/// Runs the body for each element of the sequences along dim 0, whose size they share. `carries` are the values that
/// the first iteration gets; each other one gets those that the iteration before returned. Throws UserError
///   [loop_sequence]  no sequence is given, or one is a scalar
///   [loop_carry]     a next value differs in dtype or shape from its carry, or their numbers differ
///   [loop_operand]   sequences of different sizes
///   [loop_checkpoint] `checkpoint_every` is negative, or it does not divide an unknown number of iterations
///   [loop_body]      the body declares an input or output, updates a state, or draws random numbers from a state
///   that
///                    is the same in all iterations (random_state() of its graph is not)
LoopResults scan(std::vector<Tensor> carries, std::vector<Tensor> sequences, const ScanBody& body,
                 const LoopOptions& options = {}, Where at = Where::current());
/// The same for one carry and one sequence. The body returns the next value of the carry and an output.
std::pair<Tensor, Tensor> scan(const Tensor& carry, const Tensor& sequence,
                               const std::function<std::pair<Tensor, Tensor>(const Tensor&, const Tensor&)>& body,
                               const LoopOptions& options = {}, Where at = Where::current());

/// Runs the body `times` times. `index` is the number of the iteration, i64 from 0. At least one carry is needed
/// [loop_carry].
LoopResults repeat(const Dim& times, std::vector<Tensor> carries, const RepeatBody& body,
                   const LoopOptions& options = {}, Where at = Where::current());
/// The same for one carry, whose last value is returned.
Tensor repeat(const Dim& times, const Tensor& carry,
              const std::function<Tensor(const Tensor& carry, const Tensor& index)>& body,
              const LoopOptions& options = {}, Where at = Where::current());

}  // namespace lathe
