#include "passes/lowering/operands/bases.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "ir/ops/primitives/primitives.h"

namespace lathe {

namespace {

constexpr int most_sweeps = 40;  ///< Jacobi converges quadratically: fewer than 15 occur up to n = 4000

bool is_eigenvectors(const ir::Node& node) { return node.op == &ir::ops::eigenvectors; }

/// Returns the distance between rows of a matrix that is rotated, in elements: an odd number of cache lines, so that
/// the elements of a column do not share a few sets of the cache. A column of 1024 rows otherwise has one set.
Dim pitch_of(const Dim& rows, DType dtype) {
  const auto line = std::int64_t{64} / static_cast<std::int64_t>(size_in_bytes(dtype));
  const auto known = rows.value();
  return known ? Dim(((*known + line - 1) / line | 1) * line) : rows + Dim(line);
}

Dim scratch_of(const Matrices& a, const ir::Node& node, DType dtype) {
  return is_eigenvectors(node) ? a.rows * Dim(2) * pitch_of(a.rows, dtype) + a.rows : (a.rows + Dim(2)) * a.columns;
}

/// Loads a scalar operand.
kernel::Value scalar_of(ElementwiseEmitter& elements, const OperandProgram& operand) {
  ElementwiseEmitter::Scope scope(elements, {});
  return elements.emit(operand.result, scope);
}

}  // namespace

BasisKernel::BasisKernel(const LoweringContext& lowering, ir::ValueId id)
    : lowering_(lowering),
      node_(lowering.graph[id]),
      a_(lowering, node_.operands[0]),
      found_(lowering, id),
      work_(
          lowering.workspace(found_.compute(), a_.count * scratch_of(a_, node_, found_.compute()), "factorization")),
      context_(std::string(node_.op->name.value), KernelRole::factor),
      b_(context_.builder) {
  if (node_.operands.size() == 1) return;
  when_ = operand_program(lowering.graph, lowering.plan, node_.operands[1], {}, {});
  otherwise_.emplace(lowering, node_.operands[2]);
}

KernelContext::Built BasisKernel::build(
    const std::function<void(kernel::Builder&, kernel::Value count, const OneMatrix& body)>& run) {
  std::vector<const ElementwiseProgram*> programs = {&a_.operand.program};
  if (when_) programs.insert(programs.end(), {&when_->program, &otherwise_->operand.program});
  declare_buffers(context_, programs, lowering_);
  found_.declare(context_);
  context_.declare(work_, found_.compute(), true, true);
  elements_.emplace(context_, a_.operand.program, lowering_.buffer_of);
  if (when_) conditions_.emplace(context_, when_->program, lowering_.buffer_of);
  if (when_) others_.emplace(context_, otherwise_->operand.program, lowering_.buffer_of);
  m_ = context_.dim(a_.rows), n_ = context_.dim(a_.columns),
  pitch_ = context_.dim(pitch_of(a_.rows, found_.compute()));
  const kernel::Value size = context_.dim(scratch_of(a_, node_, found_.compute()));
  run(b_, context_.dim(a_.count), [&](const MatrixTeam& team, kernel::Value matrix) {
    first_ = matrix * size, out_ = matrix * m_ * n_;
    if (is_eigenvectors(node_))
      diagonalize(team, matrix);
    else
      factorize(team, matrix);
  });
  auto built = context_.finish();
  built.launch.work = a_.rows * a_.columns * a_.columns;
  return built;
}

int BasisKernel::lanes() const {
  const int lanes = program_lanes(a_.operand.program, lowering_.vectors());
  return otherwise_ ? std::min(lanes, program_lanes(otherwise_->operand.program, lowering_.vectors())) : lanes;
}

kernel::Value BasisKernel::scratch(kernel::Value at, int lanes, kernel::Value mask) {
  return b_.load(context_.buffer(work_), first_ + at, lanes, mask);
}

void BasisKernel::keep(kernel::Value at, kernel::Value value, kernel::Value mask) {
  b_.store(context_.buffer(work_), first_ + at, value, mask);
}

kernel::Value BasisKernel::inverse_of_largest(kernel::Value largest) {
  const double least = found_.compute() == f64 ? 1e-300 : 1e-37;  // the inverse is finite
  return b_.constant(found_.compute(), 1, largest.type.lanes) / max(largest, like(largest, least));
}

kernel::Value BasisKernel::active_or_copy(const MatrixTeam& team, kernel::Value matrix) {
  if (!when_) return b_.index(1);
  const kernel::Value one = b_.index(1), zero = b_.index(0);
  const kernel::Value active = b_.select(scalar_of(*conditions_, *when_), one, zero);
  b_.for_loop(0, m_ * (one - active), 1, [&](kernel::Value i) {
    team.vectors(zero, n_, [&](kernel::Value j, kernel::Value mask) {
      const kernel::Value other = otherwise_->along_columns(*others_, matrix, i, j, team.lanes, mask);
      found_.store(context_, out_ + i * n_ + j, other, mask);
    });
  });
  return active;
}

// ---- orthonormal_basis

void BasisKernel::factorize(const MatrixTeam& team, kernel::Value matrix) {
  const kernel::Value columns = n_ * active_or_copy(team, matrix);
  scale_columns(team, matrix, columns);
  b_.for_loop(0, columns, 1, [&](kernel::Value k) { reflect_columns(team, k); });
  form_basis(team, columns);
}

void BasisKernel::scale_columns(const MatrixTeam& team, kernel::Value matrix, kernel::Value columns) {
  team.vectors(b_.index(0), columns, [&](kernel::Value j, kernel::Value mask) {
    const auto element = [&](kernel::Value i) {
      return a_.along_columns(*elements_, matrix, i, j, team.lanes, mask);
    };
    const kernel::Var largest = b_.var(b_.constant(found_.compute(), 0, team.lanes));
    b_.for_loop(0, m_, 1, [&](kernel::Value i) { b_.set(largest, max(b_.get(largest), absolute(element(i)))); });
    const kernel::Value inverse = inverse_of_largest(b_.get(largest));
    b_.for_loop(0, m_, 1, [&](kernel::Value i) { keep(i * n_ + j, element(i) * inverse, mask); });
  });
  team.barrier();
}

void BasisKernel::reflect_columns(const MatrixTeam& team, kernel::Value k) {
  const kernel::Value row_k = k * n_, next = k + 1;
  const kernel::Var squares = b_.var(b_.constant(found_.compute(), 0));
  b_.for_loop(next, m_, 1, [&](kernel::Value i) {
    const kernel::Value x = scratch(i * n_ + k);
    b_.set(squares, b_.fma(x, x, b_.get(squares)));
  });
  const kernel::Value pivot = scratch(row_k + k), below = b_.get(squares);
  const kernel::Value zero = like(pivot, 0.0), one = like(pivot, 1.0), is_done = equal(below, zero);
  const kernel::Value norm = root(b_.fma(pivot, pivot, below));
  const kernel::Value diagonal = b_.select(is_done, pivot, b_.select(pivot < 0.0, norm, -norm));  // of r
  const kernel::Value factor = b_.select(is_done, zero, (diagonal - pivot) / diagonal);
  const kernel::Value inverse = b_.select(is_done, zero, one / (pivot - diagonal));
  team.barrier();  // all members have column k before it is written
  team.elements(next, m_, [&](kernel::Value i) { keep(i * n_ + k, scratch(i * n_ + k) * inverse); });
  team.elements(k, next, [&](kernel::Value) {
    keep(m_ * n_ + k, factor);
    keep((m_ + 1) * n_ + k, b_.select(diagonal < 0.0, -one, one));
  });
  team.barrier();
  team.vectors(next, n_, [&](kernel::Value j, kernel::Value mask) {
    const kernel::Var dot = b_.var(scratch(row_k + j, team.lanes, mask));
    const auto v = [&](kernel::Value i) { return b_.broadcast(scratch(i * n_ + k), team.lanes); };
    b_.for_loop(next, m_, 1, [&](kernel::Value i) {
      b_.set(dot, b_.fma(v(i), scratch(i * n_ + j, team.lanes, mask), b_.get(dot)));
    });
    const kernel::Value moved = b_.get(dot) * b_.broadcast(factor, team.lanes);
    keep(row_k + j, scratch(row_k + j, team.lanes, mask) - moved, mask);
    b_.for_loop(next, m_, 1, [&](kernel::Value i) {
      keep(i * n_ + j, b_.fma(-v(i), moved, scratch(i * n_ + j, team.lanes, mask)), mask);
    });
  });
  team.barrier();
}

/// Applies the reflections to the columns of the signs' diagonal matrix, the last one first. Column j is zero below
/// row j until its own reflection.
void BasisKernel::form_basis(const MatrixTeam& team, kernel::Value columns) {
  const int lanes = team.lanes;
  team.vectors(b_.index(0), columns, [&](kernel::Value j, kernel::Value mask) {
    const auto at = [&](kernel::Value i) { return out_ + i * n_ + j; };
    const auto q = [&](kernel::Value i) { return found_.load(context_, at(i), lanes, mask); };
    const kernel::Value sign = scratch((m_ + 1) * n_ + j, lanes, mask),
                        zero = b_.constant(found_.compute(), 0, lanes);
    b_.for_loop(0, m_, 1, [&](kernel::Value i) {
      const kernel::Value is_diagonal = equal(lane_index(j, lanes), b_.broadcast(i, lanes));
      found_.keep(context_, at(i), b_.select(is_diagonal, sign, zero), mask);
    });
    const kernel::Value count = min(j + lanes, n_);
    b_.for_loop(0, count, 1, [&](kernel::Value turn) {
      const kernel::Value k = count - 1 - turn;
      const auto v = [&](kernel::Value i) { return b_.broadcast(scratch(i * n_ + k), lanes); };
      const kernel::Var dot = b_.var(q(k));
      b_.for_loop(k + 1, m_, 1, [&](kernel::Value i) { b_.set(dot, b_.fma(v(i), q(i), b_.get(dot))); });
      const kernel::Value moved = b_.get(dot) * b_.broadcast(scratch(m_ * n_ + k), lanes);
      found_.keep(context_, at(k), q(k) - moved, mask);
      b_.for_loop(k + 1, m_, 1,
                  [&](kernel::Value i) { found_.keep(context_, at(i), b_.fma(-v(i), moved, q(i)), mask); });
    });
    b_.for_loop(0, m_, 1, [&](kernel::Value i) { found_.store(context_, at(i), q(i), mask); });
  });
}

// ---- eigenvectors

void BasisKernel::diagonalize(const MatrixTeam& team, kernel::Value matrix) {
  const kernel::Value active = active_or_copy(team, matrix), zero = b_.index(0);
  const kernel::Value rows = n_ * active;
  const kernel::Value poison = load_symmetric(team, matrix, rows);
  b_.for_loop(0, rows, 1, [&](kernel::Value i) {
    team.elements(zero, n_, [&](kernel::Value j) {
      const kernel::Value one = like(poison, 1.0);
      keep((n_ + i) * pitch_ + j, b_.select(equal(i, j), one, like(poison, 0.0)) + poison);
    });
  });
  team.barrier();
  const kernel::Var turned = b_.var(b_.index(1));  // rotations of the last sweep
  b_.for_loop(0, b_.index(most_sweeps) * active, 1, [&](kernel::Value) {
    const kernel::Value count = b_.select(b_.get(turned) > 0, n_, zero);
    b_.set(turned, zero);
    b_.for_loop(0, count, 1, [&](kernel::Value p) {
      b_.for_loop(p + 1, n_, 1, [&](kernel::Value q) {
        const kernel::Value element = scratch(p * pitch_ + q);
        const double epsilon = found_.compute() == f64 ? std::numeric_limits<double>::epsilon()
                                                       : static_cast<double>(std::numeric_limits<float>::epsilon());
        const kernel::Value times = b_.select(absolute(element) > epsilon * epsilon, b_.index(1), zero);
        b_.for_loop(0, times, 1, [&](kernel::Value) {
          rotate(team, p, q);
          b_.set(turned, b_.get(turned) + 1);
        });
      });
    });
  });
  b_.for_loop(0, rows, 1, [&](kernel::Value i) {
    team.elements(zero, n_, [&](kernel::Value j) {
      found_.store(context_, out_ + i * n_ + j, scratch((n_ + j) * pitch_ + i));
    });
  });
}

/// Returns 0, or NaN if an element is not finite.
kernel::Value BasisKernel::load_symmetric(const MatrixTeam& team, kernel::Value matrix, kernel::Value rows) {
  const kernel::Value zero = b_.index(0), tops = n_ * pitch_ * 2;
  const auto mean = [&](kernel::Value i, kernel::Value j) {
    return (a_.along_columns(*elements_, matrix, i, j) + a_.along_columns(*elements_, matrix, j, i)) * 0.5;
  };
  team.elements(zero, rows, [&](kernel::Value i) {
    const kernel::Var top = b_.var(b_.constant(found_.compute(), 0));
    b_.for_loop(0, n_, 1, [&](kernel::Value j) { b_.set(top, max(b_.get(top), absolute(mean(i, j)))); });
    keep(tops + i, b_.get(top));
  });
  team.barrier();
  const kernel::Var largest = b_.var(b_.constant(found_.compute(), 0));
  b_.for_loop(0, rows, 1, [&](kernel::Value i) { b_.set(largest, max(b_.get(largest), scratch(tops + i))); });
  const kernel::Value inverse = inverse_of_largest(b_.get(largest));
  b_.for_loop(0, rows, 1, [&](kernel::Value i) {
    team.elements(zero, n_, [&](kernel::Value j) { keep(i * pitch_ + j, mean(i, j) * inverse); });
  });
  return b_.get(largest) * 0.0;
}

void BasisKernel::rotate(const MatrixTeam& team, kernel::Value p, kernel::Value q) {
  const kernel::Value pp = scratch(p * pitch_ + p), qq = scratch(q * pitch_ + q), pq = scratch(p * pitch_ + q);
  const kernel::Value zero = like(pq, 0.0), one = like(pq, 1.0);
  const kernel::Value ratio = (qq - pp) / (pq * 2.0);
  const kernel::Value size = one / (absolute(ratio) + root(b_.fma(ratio, ratio, one)));
  const kernel::Value tangent = b_.select(ratio < 0.0, -size, size);
  const kernel::Value cosine = one / root(b_.fma(tangent, tangent, one)), sine = tangent * cosine;
  const kernel::Value new_pp = pp - tangent * pq, new_qq = qq + tangent * pq;
  team.barrier();  // all members have the elements before they are written
  const int lanes = team.lanes;
  const auto wide = [&](kernel::Value x) { return b_.broadcast(x, lanes); };
  team.vectors(b_.index(0), n_, [&](kernel::Value k, kernel::Value mask) {
    const auto turn = [&](kernel::Value row_p, kernel::Value row_q, const auto& result) {
      const kernel::Value x = scratch(row_p + k, lanes, mask), y = scratch(row_q + k, lanes, mask);
      result(b_.fma(wide(cosine), x, -(wide(sine) * y)), b_.fma(wide(sine), x, wide(cosine) * y));
    };
    turn((n_ + p) * pitch_, (n_ + q) * pitch_, [&](kernel::Value x, kernel::Value y) {
      keep((n_ + p) * pitch_ + k, x, mask);
      keep((n_ + q) * pitch_ + k, y, mask);
    });
    const kernel::Value at_p = equal(lane_index(k, lanes), wide(p)), at_q = equal(lane_index(k, lanes), wide(q));
    turn(p * pitch_, q * pitch_, [&](kernel::Value x, kernel::Value y) {
      const kernel::Value own_x = b_.select(at_p, wide(new_pp), b_.select(at_q, wide(zero), x));
      const kernel::Value own_y = b_.select(at_q, wide(new_qq), b_.select(at_p, wide(zero), y));
      keep(p * pitch_ + k, own_x, mask);
      keep(q * pitch_ + k, own_y, mask);
    });
  });
  team.barrier();
  mirror_rows(team, p, q);
}

/// Copies rows p and q to columns p and q.
void BasisKernel::mirror_rows(const MatrixTeam& team, kernel::Value p, kernel::Value q) {
  team.elements(b_.index(0), n_, [&](kernel::Value k) {
    b_.if_(not_equal(k, p) && not_equal(k, q), [&] {  // elsewhere rows and columns meet, and are equal
      keep(k * pitch_ + p, scratch(p * pitch_ + k));
      keep(k * pitch_ + q, scratch(q * pitch_ + k));
    });
  });
  team.barrier();
}

}  // namespace lathe
