#include <algorithm>
#include <numeric>

#include "ir/ops/functional/functional_composites.h"
#include "tests/fuzz/graph_maker.h"

namespace lathe::fuzz {

using namespace ir;

GraphMaker::Maybe GraphMaker::view_of(const Value& a) {
  const int rank = a.rank();
  if (rank == 0) return one_in(2) ? unsqueeze(a, 0) : expand(a, {any_size(), any_size()});
  const int d = any_dim(a), e = any_dim(a);
  switch (below(9)) {
    case 0: return transpose(a, d, e - rank);
    case 1: {
      std::vector<std::int64_t> dims(static_cast<std::size_t>(rank));
      std::iota(dims.begin(), dims.end(), 0);
      std::shuffle(dims.begin(), dims.end(), random_);
      return permute(a, dims);
    }
    case 2: return unsqueeze(a, below(rank + 1));
    case 3: return a.shape()[d].is(1) ? Maybe(squeeze(a, d)) : std::nullopt;
    case 4: {
      Shape wider = a.shape();
      for (int i = 0; i < rank; ++i)
        if (wider[i].is(1) && one_in(2)) wider.set(i, any_size());
      if (one_in(2)) {
        std::vector<Dim> dims = {any_size()};
        dims.insert(dims.end(), wider.begin(), wider.end());
        wider = Shape(dims);
      }
      return expand(a, wider);
    }
    case 5: return rank >= 2 && d != e && a.shape()[d] == a.shape()[e] ? Maybe(diagonal(a, d, e)) : std::nullopt;
    case 6: return repeat_interleave(a, 2, d);
    case 7: return windows_of(a);
    default: return contiguous(a);
  }
}

GraphMaker::Maybe GraphMaker::windows_of(const Value& a) {
  const int d = any_dim(a);
  const auto size = a.shape()[d].value();
  if (!size || *size == 0) return std::nullopt;
  const std::int64_t count = 1 + below(static_cast<int>(std::min<std::int64_t>(*size, 3))), dilation = 1 + below(2);
  if (dilation * (count - 1) + 1 > *size) return std::nullopt;
  return unfold(a, d, count, 1 + below(3), dilation);
}

/// Merges and splits of dims, through `reshape` or, if strides allow it, `view`.
GraphMaker::Maybe GraphMaker::reshaped(const Value& a) {
  const int rank = a.rank();
  if (rank == 0) return std::nullopt;
  const int d = any_dim(a), e = any_dim(a);
  switch (below(4)) {
    case 0: return reshape(a, {a.shape().numel()});
    case 1: return flatten(a, std::min(d, e), std::max(d, e));
    case 2: return a.type().is_contiguous() ? Maybe(view(a, {a.shape().numel(), 1})) : std::nullopt;
    default: {
      const Dim part = any_of(std::vector<Dim>{2, part_, width_, late("n"), late("m"), Dim("h", 2)});
      const auto rest = a.shape()[d].divided_by(part);
      if (!rest) return std::nullopt;
      std::vector<Dim> dims;
      for (int i = 0; i < rank; ++i) {
        if (i != d) {
          dims.push_back(a.shape()[i]);
          continue;
        }
        dims.push_back(one_in(2) ? *rest : part);
        dims.push_back(dims.back() == *rest ? part : *rest);
      }
      return a.type().is_contiguous() && one_in(2) ? view(a, Shape(dims)) : reshape(a, Shape(dims));
    }
  }
}

GraphMaker::Maybe GraphMaker::sliced(const Value& a) {
  if (a.rank() == 0) return std::nullopt;
  const int d = any_dim(a);
  if (one_in(6)) return flip(a, d);
  const Dim size = a.shape()[d];
  if (const auto known = size.value()) {
    const int count = static_cast<int>(*known);
    if (count == 0) return std::nullopt;
    const int start = below(count), stop = start + below(count - start + 1);
    return one_in(4) ? select(a, d, start) : slice(a, d, start, stop, 1 + below(3));
  }
  switch (below(5)) {
    case 0: return slice(concat(std::vector<Value>{a, a}, d), d, 0, size * 2, 2);
    case 1: return slice(a, d, size, size);
    case 2: return slice(concat(std::vector<Value>{a, a}, d), d, size, size * 2);
    case 3: return slice(pad(a, d, 1, size), d, 1, size + 1, 1);
    default: return one_in(6) ? slice(a, d, size - Dim(1), size) : slice(a, d, 0, size);
  }
}

GraphMaker::Maybe GraphMaker::reduction(const Value& a) {
  const bool keepdim = one_in(2);
  if (a.rank() == 0 || a.dtype() == boolean) return std::nullopt;
  const auto dims = any_dims(a);
  const int d = any_dim(a);
  if (is_float(a.dtype()) && one_in(12))
    return linear_recurrence(tanh(a), one_in(2) ? sin(a) : tanh(a), d, one_in(2));
  if (one_in(8)) return cumsum(is_float(a.dtype()) ? tanh(a) : a, d, one_in(2), one_in(2));
  if (is_float(a.dtype()) && one_in(8)) {
    const Maybe steady = pick_steady(nullptr);
    if (!steady || steady->rank() == 0) return std::nullopt;
    const int along = any_dim(*steady);
    const Dim size = steady->shape()[along];
    if (one_in(3)) return take_along(*steady, argsort(*steady, along, one_in(2)), along);
    if (one_in(2))
      return top_k(*steady, one_in(2) || !size.value() ? size : Dim((*size.value() + 1) / 2), along, one_in(2));
    return size.is(0) ? std::nullopt : Maybe(argmax(*steady, along));
  }
  if (!is_float(a.dtype()))
    return one_in(3)   ? sum(a, dims, keepdim)
           : one_in(8) ? prod(a, dims, keepdim)
           : one_in(2) ? max(a, dims, keepdim)
                       : min(a, dims, keepdim);
  switch (below(10)) {
    case 0:
    case 1: return sum(tanh(a), dims, keepdim);
    case 2: return max(a, dims, keepdim);
    case 3: return min(a, dims, keepdim);
    case 4: return mean(a, dims, keepdim);
    case 5: return var(a, dims, keepdim, below(2));
    case 6: return logsumexp(a, d, keepdim);
    case 7: return sum(square(tanh(a)), dims, true);
    case 8: return prod(tanh(a), dims, keepdim);
    default: return mean(mul(a, a), dims, keepdim);
  }
}

/// A well-conditioned matrix of the products of the last dim: tanh(a) tanh(a)^T + 2.
GraphMaker::Maybe GraphMaker::triangular(const Value& a) {
  if (a.rank() < 2 || !is_float(a.dtype())) return std::nullopt;
  const Value b = tanh(a);
  const Dim n = a.shape()[a.rank() - 2];
  const Value same = eq(iota(builder_, {n, 1}, 0, i64), iota(builder_, {1, n}, 1, i64));
  const Value factor = cholesky(add(matmul(b, transpose(b, -1, -2)), mul(cast(same, a.dtype()), 2.0)));
  if (one_in(4)) return square(orthonormal_basis(factor));  // columns of zeros below the diagonal may change signs
  // Distinct eigenvalues, far enough from each other that rounding errors do not swap vectors. Vectors are exact to
  // the precision of the matrix's largest element, which says nothing of values that only depend on far smaller ones,
  // such as the eigenvectors of a matrix made of eigenvectors.
  if (!scaled_ && !has_eigenvectors_ && one_in(4)) {
    has_eigenvectors_ = true;
    const Value along = cast(iota(builder_, {1, n}, 1, i64), a.dtype());
    return square(eigenvectors(add(mul(matmul(b, transpose(b, -1, -2)), 1e-3), mul(cast(same, a.dtype()), along))));
  }
  return one_in(3) ? factor : solve_triangular(factor, b, false, one_in(2), one_in(4));
}

GraphMaker::Maybe GraphMaker::joined(const Value& a) {
  if (a.rank() == 0) return std::nullopt;
  const int d = any_dim(a);
  const Dim size = a.shape()[d];
  const Maybe other = pick_same(a);
  const Value b = other && one_in(2) ? *other : a;
  switch (below(6)) {
    case 0: return concat(std::vector<Value>{a, b}, d);
    case 1: return concat(std::vector<Value>{b, slice(a, d, 0, 0), a}, d);
    case 2: return stack(std::vector<Value>{a, b}, below(a.rank() + 1));
    case 3: return is_float(a.dtype()) ? Maybe(add(pad(a, d, 0, size), pad(b, d, size, 0))) : std::nullopt;
    case 4: return pad(a, d, below(3), below(3));
    default: {
      if (size.is(0)) return std::nullopt;  // the number of parts would be undefined
      const auto parts = split(concat(std::vector<Value>{a, b, a}, d), size, d);
      return concat(std::vector<Value>{parts[2], parts[1]}, d);
    }
  }
}

/// Indices are always in range: integer arguments are, and other indices are counted.
GraphMaker::Maybe GraphMaker::indexed(const Value& a) {
  if (a.rank() == 0) return std::nullopt;
  const int d = any_dim(a);
  const Dim size = a.shape()[d];
  const bool wide_enough = size.value() && *size.value() > top_integer;
  const Value index = any_of(indices_);
  switch (below(6)) {
    case 0: return wide_enough ? Maybe(gather(a, one_in(3) ? cast(index, i32) : index, d)) : std::nullopt;
    case 1: {
      const Value back = sub(dim_value(builder_, size, i64), add(iota(builder_, {size}, 0, i64), 1.0));
      return gather(a, back, d);
    }
    case 2: {
      if (!wide_enough) return std::nullopt;
      Shape shape = a.shape();
      shape.set(d, 2);
      return take_along(a, rem(iota(builder_, shape, below(a.rank()), i64), constant(builder_, 3.0, i64)), d);
    }
    case 3: {
      if (!is_float(a.dtype())) return std::nullopt;
      const Value rows = rem(iota(builder_, {size}, 0, i64), constant(builder_, 3.0, i64));
      return scatter_add(rows, tanh(a), one_in(2) ? Dim(3) : late("n") + 3, d);
    }
    case 4: {
      if (!wide_enough || (!is_float(a.dtype()) && !is_integer(a.dtype()))) return std::nullopt;
      const Value rows = add(slice(a, d, 0, 1), a),
                  indices = rem(iota(builder_, {size}, 0, i64), constant(builder_, 3.0, i64));
      if (one_in(3))
        return scatter(a, rem(iota(builder_, rows.shape(), below(a.rank()), i64), constant(builder_, 3.0, i64)), rows,
                       d);
      if (d == 0 || one_in(2)) return update_rows(a, indices, rows, d);
      const Shape lists{a.shape()[0], size};
      return update_rows(a, rem(iota(builder_, lists, below(2), i64), constant(builder_, 3.0, i64)), rows, d);
    }
    default: return one_hot(index, one_in(2) ? Dim(width_) : late("k"), real_);
  }
}

}  // namespace lathe::fuzz
