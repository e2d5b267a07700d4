#include "ir/ops/primitives/primitives.h"
#include "passes/gpu/gpu_kernels.h"
#include "passes/lowering/operands/bases.h"
#include "passes/lowering/operands/matrices.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;

namespace {

/// Emits a Cholesky decomposition column by column: a column is computed from the ones before it, and its elements
/// are distributed over the threads.
KernelContext::Built factor(const GpuContext& lowering, ir::ValueId id) {
  const Matrices a(lowering, lowering.graph[id].operands[0]);
  KernelContext context("cholesky", KernelRole::factor);
  kernel::Builder& b = context.builder;
  const FoundElements found(lowering, id);
  declare_buffers(context, {&a.operand.program}, lowering);
  found.declare(context);
  ElementwiseEmitter elements(context, a.operand.program, lowering.buffer_of);
  const Value n = context.dim(a.rows), zero = b.constant(found.compute(), 0);
  const auto l = [&](Value at) { return found.load(context, at); };

  const auto thread = [&](Value matrix, Value x) {
    const Value first = matrix * n * n;
    b.for_loop(x, n * n, block_threads, [&](Value at) {
      const Value i = at / n, j = at % n;
      const Value mean = (a.along_columns(elements, matrix, i, j) + a.along_columns(elements, matrix, j, i)) * 0.5;
      found.store(context, first + at, b.select(j <= i, mean, zero));
    });
    b.barrier();
    b.for_loop(0, n, 1, [&](Value j) {
      const Value row = first + j * n;
      b.for_loop(j + x, n, block_threads, [&](Value i) {
        const kernel::Var rest = b.var(l(first + i * n + j));
        b.for_loop(0, j, 1, [&](Value k) { b.set(rest, b.fma(-l(first + i * n + k), l(row + k), b.get(rest))); });
        found.keep(context, first + i * n + j, b.get(rest));
      });
      b.barrier();
      const Value root = pivot_root(b, l(row + j));
      b.barrier();  // all threads have the pivot before its place is written
      b.for_loop(j + x, n, block_threads, [&](Value i) {
        const Value at = first + i * n + j;
        found.store(context, at, b.select(equal(i, j), root, l(at) / root));
      });
      b.barrier();
    });
  };
  const auto block = [&](Value matrix) {
    b.for_loop(0, block_threads, 1, [&](Value x) { thread(matrix, x); }, LoopKind::thread_x);
  };
  b.for_loop(0, context.dim(a.count), 1, block, LoopKind::block_x);
  return context.finish();
}

KernelContext::Built solve(const GpuContext& lowering, ir::ValueId id) {
  const ir::Node& node = lowering.graph[id];
  const TriangularSolve form(node);
  const Matrices a(lowering, node.operands[0]), right(lowering, node.operands[1]);
  KernelContext context("solve_triangular", KernelRole::solve);
  kernel::Builder& b = context.builder;
  const FoundElements found(lowering, id);
  declare_buffers(context, {&a.operand.program, &right.operand.program}, lowering);
  found.declare(context);
  ElementwiseEmitter factors(context, a.operand.program, lowering.buffer_of),
      rights(context, right.operand.program, lowering.buffer_of);
  const Value n = context.dim(right.rows), columns = context.dim(right.columns);
  for_threads(b, context.dim(right.count) * columns, 1, [&](Value number) {
    const Value matrix = number / columns, column = number % columns;
    const auto at = [&](Value i) { return (matrix * n + i) * columns + column; };
    b.for_loop(0, n, 1, [&](Value turn) {
      const Value i = form.unknown(turn, n);
      const kernel::Var rest = b.var(right.along_columns(rights, matrix, i, column));
      b.for_loop(0, turn, 1, [&](Value before) {
        const Value j = form.unknown(before, n), factor = form.factor(a, factors, matrix, i, j);
        b.set(rest, b.fma(-factor, found.load(context, at(j)), b.get(rest)));
      });
      const Value own = form.unit ? b.get(rest) : b.get(rest) / form.factor(a, factors, matrix, i, i);
      found.store(context, at(i), own);
    });
  });
  return context.finish();
}

/// Emits an orthonormal_basis or eigenvectors: each block has one matrix.
KernelContext::Built basis(const GpuContext& lowering, ir::ValueId id) {
  BasisKernel kernel(lowering, id);
  return kernel.build([](kernel::Builder& b, Value count, const BasisKernel::OneMatrix& body) {
    const auto thread = [&](Value matrix, Value x) {
      const auto elements = [&b, x](Value lo, Value hi, const std::function<void(Value)>& one) {
        b.for_loop(lo + x, hi, block_threads, one);
      };
      const auto vectors = [&](Value lo, Value hi, const MatrixTeam::Body& one) {
        elements(lo, hi, [&](Value at) { one(at, {}); });
      };
      body({.lanes = 1, .vectors = vectors, .elements = elements, .barrier = [&b] { b.barrier(); }}, matrix);
    };
    const auto block = [&](Value matrix) {
      b.for_loop(0, block_threads, 1, [&](Value x) { thread(matrix, x); }, LoopKind::thread_x);
    };
    b.for_loop(0, count, 1, block, LoopKind::block_x);
  });
}

}  // namespace

std::vector<KernelContext::Built> lower_triangular(const GpuContext& context, const Region& region) {
  const ir::ValueId id = region.members[0];
  const ir::OpRef op = context.graph[id].op;
  std::vector<KernelContext::Built> built;
  if (op == &ir::ops::cholesky)
    built.push_back(factor(context, id));
  else if (op == &ir::ops::solve_triangular)
    built.push_back(solve(context, id));
  else
    built.push_back(basis(context, id));
  return built;
}

}  // namespace lathe::gpu
