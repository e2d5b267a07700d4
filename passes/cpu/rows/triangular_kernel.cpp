#include "ir/ops/primitives/primitives.h"
#include "passes/cpu/cpu_kernels.h"
#include "passes/lowering/operands/bases.h"
#include "passes/lowering/operands/matrices.h"

namespace lathe::cpu {

using kernel::Value;

namespace {

/// Emits a cholesky. Row i of the factor follows from the rows before it: element j from the dot product of the first
/// j elements of rows i and j.
class CholeskyKernel {
 public:
  CholeskyKernel(const CpuContext& lowering, ir::ValueId id)
      : lowering_(lowering),
        a_(lowering, lowering.graph[id].operands[0]),
        context_("cholesky", KernelRole::factor),
        b_(context_.builder),
        factor_(lowering, id),
        lanes_(program_lanes(a_.operand.program, lowering.vectors())) {}

  KernelContext::Built run() {
    declare_buffers(context_, {&a_.operand.program}, lowering_);
    factor_.declare(context_);
    ElementwiseEmitter elements(context_, a_.operand.program, lowering_.buffer_of);
    n_ = context_.dim(a_.rows);
    b_.parallel_for(0, context_.dim(a_.count), 1, [&](Value matrix) {
      const Value first = matrix * n_ * n_;
      b_.for_loop(0, n_, 1, [&](Value i) {
        copy_row(elements, matrix, first, i);
        finish_row(first, i);
      });
    });
    auto built = context_.finish();
    built.launch.work = a_.rows * a_.rows * a_.rows;
    return built;
  }

 private:
  Value factor(Value at, int lanes = 1, Value mask = {}) { return factor_.load(context_, at, lanes, mask); }

  /// Writes the mean of row and column i up to the diagonal, and zeros after it.
  void copy_row(ElementwiseEmitter& elements, Value matrix, Value first, Value i) {
    vector_loop(b_, b_.index(0), n_, lanes_, [&](Value j, Value mask) {
      const Value mean = (a_.along_columns(elements, matrix, i, j, lanes_, mask) +
                          a_.along_rows(elements, matrix, j, i, lanes_, mask)) *
                         0.5;
      const Value inside = (lanes_ == 1 ? j : b_.ramp(j, lanes_)) <= b_.broadcast(i, lanes_);
      const Value zeros = b_.constant(factor_.compute(), 0, lanes_);
      factor_.store(context_, first + i * n_ + j, b_.select(inside, mean, zeros), mask);
    });
  }

  void finish_row(Value first, Value i) {
    const Value row = first + i * n_;
    b_.for_loop(0, i, 1, [&](Value j) {
      const Value other = first + j * n_;
      const Value rest = factor(row + j) - dot(row, other, j);
      factor_.store(context_, row + j, rest / factor(other + j));
    });
    factor_.store(context_, row + i, pivot_root(b_, factor(row + i) - dot(row, row, i)));
  }

  Value dot(Value x, Value y, Value count) {
    const kernel::Var sum = b_.var(b_.constant(factor_.compute(), 0, lanes_));
    vector_loop(b_, b_.index(0), count, lanes_, [&](Value k, Value mask) {
      b_.set(sum, b_.fma(factor(x + k, lanes_, mask), factor(y + k, lanes_, mask), b_.get(sum)));
    });
    return lanes_ == 1 ? b_.get(sum) : b_.reduce(ScalarOp::add, b_.get(sum));
  }

  const CpuContext& lowering_;
  Matrices a_;
  KernelContext context_;
  kernel::Builder& b_;
  FoundElements factor_;
  int lanes_;
  Value n_;
};

/// Emits a solve_triangular: each lane substitutes the unknowns that are found into the next equation of its column.
KernelContext::Built solve(const CpuContext& lowering, ir::ValueId id) {
  const ir::Node& node = lowering.graph[id];
  const TriangularSolve form(node);
  const Matrices a(lowering, node.operands[0]), right(lowering, node.operands[1]);
  KernelContext context("solve_triangular", KernelRole::solve);
  kernel::Builder& b = context.builder;
  const FoundElements found(lowering, id);
  const int lanes = program_lanes(right.operand.program, lowering.vectors());
  declare_buffers(context, {&a.operand.program, &right.operand.program}, lowering);
  found.declare(context);
  ElementwiseEmitter factors(context, a.operand.program, lowering.buffer_of),
      rights(context, right.operand.program, lowering.buffer_of);
  const Value n = context.dim(right.rows), columns = context.dim(right.columns);
  const std::int64_t width = lowering.tuned.loops.scan_task_vectors * lanes;
  const Value blocks = b.ceil_div(columns, width);
  b.parallel_for(0, context.dim(right.count) * blocks, 1, [&](Value task) {
    const Value matrix = task / blocks, lo = task % blocks * width;
    const auto solve_columns = [&](Value column, Value mask) {
      const auto at = [&](Value i) { return (matrix * n + i) * columns + column; };
      b.for_loop(0, n, 1, [&](Value turn) {
        const Value i = form.unknown(turn, n);
        const kernel::Var rest = b.var(right.along_columns(rights, matrix, i, column, lanes, mask));
        b.for_loop(0, turn, 1, [&](Value before) {
          const Value j = form.unknown(before, n), factor = form.factor(a, factors, matrix, i, j);
          const Value known = found.load(context, at(j), lanes, mask);
          b.set(rest, b.fma(-b.broadcast(factor, lanes), known, b.get(rest)));
        });
        const Value own = form.unit ? b.get(rest) : b.get(rest) / form.factor(a, factors, matrix, i, i);
        found.store(context, at(i), own, mask);
      });
    };
    vector_loop(b, lo, kernel::min(lo + width, columns), lanes, solve_columns);
  });
  auto built = context.finish();
  built.launch.work = right.rows * right.rows * Dim(width);
  return built;
}

/// Emits an orthonormal_basis or eigenvectors: each task has one matrix.
KernelContext::Built basis(const CpuContext& lowering, ir::ValueId id) {
  BasisKernel kernel(lowering, id);
  return kernel.build([&](kernel::Builder& b, Value count, const BasisKernel::OneMatrix& body) {
    const int lanes = kernel.lanes();
    const MatrixTeam team{
        .lanes = lanes,
        .vectors = [&b, lanes](Value lo, Value hi,
                               const MatrixTeam::Body& one) { vector_loop(b, lo, hi, lanes, one); },
        .elements = [&b](Value lo, Value hi, const std::function<void(Value)>& one) { b.for_loop(lo, hi, 1, one); },
        .barrier = [] {}};
    b.parallel_for(0, count, 1, [&](Value matrix) { body(team, matrix); });
  });
}

}  // namespace

std::vector<KernelContext::Built> lower_triangular(const CpuContext& context, const Region& region) {
  const ir::ValueId id = region.members[0];
  const ir::OpRef op = context.graph[id].op;
  std::vector<KernelContext::Built> built;
  if (op == &ir::ops::cholesky)
    built.push_back(CholeskyKernel(context, id).run());
  else if (op == &ir::ops::solve_triangular)
    built.push_back(solve(context, id));
  else
    built.push_back(basis(context, id));
  return built;
}

}  // namespace lathe::cpu
