#include "models/import/ops/scatter_functions.h"

#include <fmt/core.h>

#include <limits>

#include "frontend/ops/loops/loops.h"
#include "models/import/ops/elementwise_functions.h"
#include "models/import/ops/indexing_functions.h"

namespace lathe::importing {

namespace {

/// The number that every other one is larger than, or smaller than.
Number limit_of(ScatterKind kind, DType dtype) {
  const bool is_largest = kind == ScatterKind::largest;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (is_float(dtype)) return is_largest ? -infinity : infinity;
  return is_largest ? integer_limits(dtype).lowest : integer_limits(dtype).highest;
}

/// Combines the elements of x with updates along an axis: one at each index. Indices have the shape of the updates.
class Scatter {
 public:
  Scatter(const Tensor& x, const Tensor& indices, const Tensor& updates, int axis, bool includes_self)
      : x_(x), indices_(indices), updates_(updates), axis_(axis), includes_self_(includes_self) {}

  Tensor combined(ScatterKind kind) const {
    switch (kind) {
      case ScatterKind::replace: return written(x_, indices_, updates_);
      case ScatterKind::add: return start(0) + added(updates_);
      case ScatterKind::multiply: return product();
      case ScatterKind::mean: return mean();
      case ScatterKind::largest:
      case ScatterKind::smallest: break;
    }
    const Tensor best = extreme(kind);
    return is_float(x_.dtype()) ? straight_through(best, shared_by_equals(best)) : best;
  }

 private:
  /// Row-major numbers of the elements of x that indices name.
  Tensor numbers(const Tensor& indices) const { return flat(element_numbers(indices, x_.shape(), axis_)); }
  static Tensor flat(const Tensor& a) { return a.reshape({a.shape().numel()}); }

  /// Returns a tensor like x with updates at indices. The last of equal indices wins.
  Tensor written(const Tensor& base, const Tensor& indices, const Tensor& updates) const {
    return update_rows(flat(base), numbers(indices), flat(updates)).reshape(x_.shape());
  }
  /// Returns the sums of updates for each element of x.
  Tensor added(const Tensor& updates) const {
    return scatter_add(numbers(indices_), flat(updates), x_.shape().numel()).reshape(x_.shape());
  }
  /// Returns the elements of a tensor like x at the indices.
  Tensor read(const Tensor& a) const { return gather(flat(a), numbers(indices_)).reshape(indices_.shape()); }

  /// The number of indices that name each element.
  Tensor counts() const { return added(ones_like(indices_)); }
  /// Returns x, without the elements that are not included.
  Tensor start(const Number& neutral) const { return includes_self_ ? x_ : where(counts() > 0, neutral, x_); }

  /// Integers are divided and rounded down.
  Tensor mean() const {
    const Tensor sum = start(0) + added(updates_);
    const Tensor count = maximum(includes_self_ ? counts() + 1 : counts(), 1).to(x_.dtype());
    return is_float(x_.dtype()) ? sum / count : (sum - floor_remainder(sum, count)) / count;
  }

  /// Sorts the indices, which puts the factors of an element one after the other, and multiplies them in this order.
  /// The last product of each element is written.
  Tensor product() const {
    const Tensor order = argsort(indices_, axis_);
    const Tensor indices = take_along(indices_, order, axis_);
    const Tensor at = indices.transpose(0, axis_), factors = take_along(updates_, order, axis_).transpose(0, axis_);
    Shape others;
    for (int i = 1; i < at.rank(); ++i) others.push_back(at.size(i));
    const Graph graph = x_.graph();
    const LoopResults loop = scan({graph.ones(others, x_.dtype()), graph.full(others, -1, i64)}, {factors, at},
                                  [](std::span<const Tensor> state, std::span<const Tensor> element) {
                                    const Tensor next =
                                        where(element[1] == state[1], state[0] * element[0], element[0]);
                                    return LoopStep{{next, element[1]}, {next}};
                                  },
                                  {.name = "product"});
    const Tensor products = loop.outputs[0].transpose(0, axis_);
    if (!includes_self_) return written(x_, indices, products);
    return x_ * written(ones_like(x_), indices, products);
  }

  /// Sorts the updates so that the last one of each element is the largest, or smallest, and writes them in this
  /// order.
  Tensor extreme(ScatterKind kind) const {
    const bool is_largest = kind == ScatterKind::largest, is_real = is_float(x_.dtype());
    // A NaN is sorted as the largest number, so the smallest ones are those whose negative is the largest.
    const Tensor order = argsort(is_real && !is_largest ? -updates_ : updates_, axis_, !is_real && !is_largest);
    const Tensor indices = take_along(indices_, order, axis_), updates = take_along(updates_, order, axis_);
    if (!includes_self_) return written(x_, indices, updates);
    const Tensor best =
        written(x_.graph().full(x_.shape(), limit_of(kind, x_.dtype()), x_.dtype()), indices, updates);
    return is_largest ? maximum(x_, best) : minimum(x_, best);
  }

  /// Returns the mean of the values that equal the largest or smallest one: it has the gradients of that.
  Tensor shared_by_equals(const Tensor& best) const {
    Tensor is_best = x_ == best;
    if (!includes_self_) is_best = is_best & (counts() == 0);
    const Tensor is_update = updates_ == read(best);
    const Tensor count = is_best.to(i64) + added(is_update.to(i64));
    const Tensor sum = where(is_best, x_, 0) + added(where(is_update, updates_, 0));
    return sum / maximum(count, 1).to(x_.dtype());
  }

  const Tensor &x_, &indices_, &updates_;
  int axis_;
  bool includes_self_;
};

Tensor combined(const Tensor& x, const Tensor& indices, const Tensor& updates, int axis,
                const ScatterOptions& options) {
  const auto combine = [&](const Tensor& data, const Tensor& values) {
    return Scatter(data, indices, values, axis, options.includes_self).combined(options.kind);
  };
  return widened(combine, x, updates);
}

/// Returns updates without those beyond the indices.
Tensor fitted(Tensor updates, const Shape& indices) {
  for (int i = 0; i < indices.rank(); ++i)
    if (updates.size(i).unnamed() != indices[i].unnamed()) updates = updates.slice(i, 0, indices[i].unnamed());
  return updates;
}

}  // namespace

Tensor scattered_along(const OpCall& call, const Tensor& x, std::size_t i, const Tensor& updates, int axis,
                       const ScatterOptions& options) {
  require_rank(call, i, x.rank());
  if (updates.rank() != x.rank())
    call.fail(fmt::format("the updates have rank {}, and the data {}", updates.rank(), x.rank()), "import_operand");
  const auto with_dims = [](const Tensor& a) { return a.rank() == 0 ? a.unsqueeze(0) : a; };
  const Tensor data = with_dims(x), indices = checked(with_dims(call.tensor(i)).to(i64), data.size(axis).unnamed());
  return combined(data, indices, fitted(with_dims(updates), indices.shape()), axis, options).reshape(x.shape());
}

Tensor with_rows(const Tensor& data, const Tensor& positions, const Tensor& rows, const ScatterOptions& options) {
  if (options.kind == ScatterKind::replace) return update_rows(data, positions, rows);
  if (options.kind == ScatterKind::add && options.includes_self)
    return data + scatter_add(positions, rows, data.size(0));
  const Tensor indices = along_axis(positions, 0, rows.rank()).expand(rows.shape());
  return combined(data, indices, rows, 0, options);
}

}  // namespace lathe::importing
