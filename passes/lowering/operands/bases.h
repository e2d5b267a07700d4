#pragma once

#include <functional>
#include <optional>

#include "passes/lowering/operands/matrices.h"

namespace lathe {

/// How the lanes of a CPU task, or the threads of a GPU block, share the work on one matrix.
struct MatrixTeam {
  using Body = std::function<void(kernel::Value at, kernel::Value mask)>;

  int lanes = 1;  ///< of the indices that `vectors` passes
  /// Calls `body` for all indices in [lo, hi): each thread for its own, vectors of `lanes` on a CPU.
  std::function<void(kernel::Value lo, kernel::Value hi, const Body& body)> vectors;
  /// Same, one index at a time.
  std::function<void(kernel::Value lo, kernel::Value hi, const std::function<void(kernel::Value)>& body)> elements;
  std::function<void()> barrier;  ///< other members see all stores before it
};

/// Emits the kernel of an orthonormal_basis or eigenvectors, one matrix at a time. `run_matrices(count, body)` calls
/// `body(team, matrix)` for all matrices.
class BasisKernel {
 public:
  BasisKernel(const LoweringContext& lowering, ir::ValueId id);

  /// Returns the number of elements that a CPU vector takes.
  int lanes() const;

  using OneMatrix = std::function<void(const MatrixTeam& team, kernel::Value matrix)>;
  /// Returns the kernel. `run(builder, count, body)` emits the loop over the matrices.
  KernelContext::Built build(
      const std::function<void(kernel::Builder&, kernel::Value count, const OneMatrix& body)>& run);

 private:
  kernel::Value scratch(kernel::Value at, int lanes = 1, kernel::Value mask = {});
  void keep(kernel::Value at, kernel::Value value, kernel::Value mask = {});
  kernel::Value absolute(kernel::Value x) { return b_.apply(ScalarOp::abs, {x}); }
  kernel::Value root(kernel::Value x) { return b_.apply(ScalarOp::sqrt, {x}); }
  kernel::Value lane_index(kernel::Value at, int lanes) { return lanes == 1 ? at : b_.ramp(at, lanes); }
  kernel::Value inverse_of_largest(kernel::Value largest);

  /// Copies `otherwise` if `when` is false. Returns 1 if the matrix is factorized, else 0: loops that are not to run
  /// have 0 as a factor in their bounds, because a branch may contain no barrier.
  kernel::Value active_or_copy(const MatrixTeam& team, kernel::Value matrix);
  /// Householder reflections of the columns, of which each is scaled by its largest element. Scratch: the vectors
  /// v [m, n], whose element (k, k) is 1 and not stored, their factors [n], and the signs of r's diagonal [n].
  void factorize(const MatrixTeam& team, kernel::Value matrix);
  void scale_columns(const MatrixTeam& team, kernel::Value matrix, kernel::Value columns);
  void reflect_columns(const MatrixTeam& team, kernel::Value k);
  void form_basis(const MatrixTeam& team, kernel::Value columns);
  /// Cyclic Jacobi rotations of the matrix over its largest element, until no element off the diagonal exceeds the
  /// square of the dtype's epsilon: the last sweep brings them there from epsilon, and small components of the
  /// vectors are exact to their own size. Scratch: the matrix s [n, n], the vectors as rows [n, n], the largest
  /// element of each row [n].
  void diagonalize(const MatrixTeam& team, kernel::Value matrix);
  kernel::Value load_symmetric(const MatrixTeam& team, kernel::Value matrix, kernel::Value rows);
  void rotate(const MatrixTeam& team, kernel::Value p, kernel::Value q);
  void mirror_rows(const MatrixTeam& team, kernel::Value p, kernel::Value q);

  const LoweringContext& lowering_;
  const ir::Node& node_;
  Matrices a_;
  std::optional<OperandProgram> when_;
  std::optional<Matrices> otherwise_;
  FoundElements found_;
  int work_;
  KernelContext context_;
  kernel::Builder& b_;
  std::optional<ElementwiseEmitter> elements_, conditions_, others_;
  kernel::Value m_, n_, pitch_;  ///< rows, columns; the distance of the rows of `diagonalize` in the scratch
  kernel::Value first_, out_;    ///< the matrix's first elements in the scratch and the result
};

}  // namespace lathe
