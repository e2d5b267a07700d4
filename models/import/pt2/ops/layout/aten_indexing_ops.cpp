#include <fmt/core.h>

#include <algorithm>

#include "models/import/ops/indexing_functions.h"
#include "models/import/ops/scatter_functions.h"
#include "models/import/ops/sizes/range_functions.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

/// Ops that read or write elements at indices.
namespace lathe::pt2 {

namespace {

using importing::checked;
using importing::linear_index;
using importing::ScatterKind;

/// Rows of padding_idx get no gradient.
Results embedding_op(const OpCall& call) {
  call.ignore({"scale_grad_by_freq", "sparse"});
  if (call.flag("scale_grad_by_freq", false)) call.fail("the argument scale_grad_by_freq is true");
  const std::int64_t padding = call.integer("padding_idx", -1);
  const Tensor table = call.tensor(0), ids = call.tensor(1);
  return {padding < 0 ? embedding(ids, table) : embedding(ids, table, padding)};
}

Results index_select(const OpCall& call) {
  const Tensor x = call.tensor(0);
  return {importing::gathered(call, x, 1, axis_argument(call, x.rank()))};
}

Results gather_op(const OpCall& call) {
  call.ignore({"sparse_grad"});
  const Tensor x = call.tensor(0);
  return {importing::gathered_along(call, x, 1, axis_argument(call, x.rank()))};
}

/// The dims of x that indices are given for, with the indices in one shape.
struct Indexed {
  Ints dims;
  std::vector<Tensor> indices;
  Shape shape;  ///< of the indices

  /// Returns where x[indices] has the dims of the indices: at the first indexed dim if neighbouring dims are indexed.
  int place() const {
    const bool are_neighbours = dims.back() - dims.front() + 1 == std::ssize(dims);
    return are_neighbours ? static_cast<int>(dims.front()) : 0;
  }
};

/// Operands from `first` on are the indices of each dim; absent ones select the whole dim.
Indexed indexed_dims(const OpCall& call, const Tensor& x, std::size_t first) {
  Indexed found;
  for (std::size_t i = first; i < call.count(); ++i) {
    if (!call.has(i)) continue;
    const auto dim = static_cast<int>(i - first);
    if (dim >= x.rank()) call.fail("there are more indices than dims", "import_operand");
    if (call.dtype(i) == boolean || is_byte(call.dtype(i)))
      call.fail("an index is a mask of bools, and the size of the result depends on its values", "import_size",
                "use torch.where, or a mask of 0 and 1 as a factor");
    found.dims.push_back(dim);
    found.indices.push_back(checked(call.tensor(i).to(i64), x.size(dim).unnamed()));
  }
  if (found.dims.empty()) call.fail("there are no indices", "import_operand");
  // The sum of zeros in all shapes has the broadcast shape.
  Tensor common = found.indices[0];
  for (std::size_t i = 1; i < found.indices.size(); ++i) common = common + found.indices[i];
  found.shape = common.shape();
  return found;
}

/// Returns the order of dims with those of the indices in front.
Ints indexed_first(const Indexed& found, int rank) {
  Ints order = found.dims;
  for (int i = 0; i < rank; ++i)
    if (std::ranges::find(found.dims, i) == found.dims.end()) order.push_back(i);
  return order;
}

/// Row-major numbers of the elements that the indices name, in the shape of the indices.
Tensor numbers_of(const OpCall& call, const Indexed& found, const Shape& permuted) {
  const int count = static_cast<int>(found.dims.size());
  return linear_index(call.graph(), permuted, 0, count,
                      [&](int i) { return found.indices[static_cast<std::size_t>(i)]; });
}

/// Returns the order of dims that moves the first `count` of them to `place`.
Ints index_dims_at(int place, int count, int rank) {
  Ints order;
  for (int i = 0; i < rank; ++i) order.push_back(i < place ? count + i : i < place + count ? i - place : i);
  return order;
}

Results index_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  std::size_t only = 0, count = 0;
  for (std::size_t i = 1; i < call.count(); ++i)
    if (call.has(i)) only = i, ++count;
  if (count == 1 && call.dtype(only) != boolean && !is_byte(call.dtype(only))) {
    const int dim = static_cast<int>(only) - 1;
    if (dim >= x.rank()) call.fail("there are more indices than dims", "import_operand");
    return {importing::gathered(call, x, only, dim)};
  }
  const Indexed found = indexed_dims(call, x, 1);
  const Tensor permuted = x.permute(indexed_first(found, x.rank()));
  const auto indexed = static_cast<int>(found.dims.size());
  const Tensor y =
      gather(importing::with_joined_dims(permuted, indexed), numbers_of(call, found, permuted.shape()), 0);
  return {y.permute(index_dims_at(found.place(), found.shape.rank(), y.rank()))};
}

/// x[mask] = number
std::optional<Tensor> masked_write(const OpCall& call, const Tensor& x) {
  if (call.count() != 3 || !call.has(2) || call.dtype(2) != boolean) return std::nullopt;
  Tensor mask = call.tensor(2);
  if (!call.operand(1).shape().numel().is(1) || mask.rank() > x.rank())
    call.fail("values are written at a mask of bools; one number is supported", "import_unsupported",
              "use torch.where");
  while (mask.rank() < x.rank()) mask = mask.unsqueeze(-1);
  return where(mask, call.tensor(1).to(x.dtype()).reshape({}), x);
}

/// Writes values over the elements that index() reads: those of a tensor in the shape of what it returns.
Results index_put(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const bool adds = call.flag("accumulate", false);
  if (!adds)
    if (const std::optional<Tensor> written = masked_write(call, x)) return {*written};
  const Indexed found = indexed_dims(call, x, 2);
  const auto indexed = static_cast<int>(found.dims.size());
  const int at = found.place();
  Shape wanted, rows{found.shape.numel()};
  for (int i = 0; i <= x.rank(); ++i) {
    if (i == at)
      for (const Dim& size : found.shape) wanted.push_back(size);
    if (i == x.rank() || std::ranges::find(found.dims, i) != found.dims.end()) continue;
    wanted.push_back(x.size(i));
    rows.push_back(x.size(i));
  }
  Tensor values = call.tensor(1).to(x.dtype()).expand(wanted);
  if (!adds && indexed == 1 && found.shape.rank() == 1) return {update_rows(x, found.indices[0], values, at)};
  const Ints order = indexed_first(found, x.rank());
  const Tensor permuted = x.permute(order);
  values = values.permute(inverse_order(index_dims_at(at, found.shape.rank(), wanted.rank())));
  const Tensor numbers = numbers_of(call, found, permuted.shape());
  const Tensor written = importing::with_rows(
      importing::with_joined_dims(permuted, indexed), numbers.expand(found.shape).reshape({found.shape.numel()}),
      values.reshape(rows), {.kind = adds ? ScatterKind::add : ScatterKind::replace});
  return {written.reshape(permuted.shape()).permute(inverse_order(order))};
}

/// The elements at row-major numbers.
Results take_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  return {importing::gathered(call, as_vector(x), 1, 0)};
}

/// As gather, but the sizes along other dims broadcast. Without a dim, the tensors are vectors.
Results take_along_dim(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const Tensor indices = call.tensor(1);
  if (!call.has("dim")) {
    const Tensor flat = as_vector(x);
    return {take_along(flat, from_front(as_vector(indices), flat.size(0).unnamed()), 0)};
  }
  const int axis = axis_argument(call, x.rank());
  if (indices.rank() != x.rank())
    call.fail(fmt::format("the indices have rank {}, and the data {}", indices.rank(), x.rank()), "import_operand");
  // The sum of zeros in both shapes has the broadcast shape.
  const auto along_one = [&](const Tensor& tensor) {
    Shape shape = tensor.shape();
    shape.set(axis, 1);
    return call.graph().zeros(shape, i64);
  };
  Shape common = (along_one(x) + along_one(indices)).shape();
  common.set(axis, x.size(axis));
  const Tensor table = x.expand(common);
  common.set(axis, indices.size(axis));
  return {take_along(table, from_front(indices.expand(common), x.size(axis).unnamed()), axis)};
}

/// Returns x with `part` in place of a slice of a dim.
Tensor replaced(const Tensor& x, int axis, const Dim& start, const Dim& end, const Tensor& part) {
  std::vector<Tensor> parts;
  if (!start.is(0)) parts.push_back(x.slice(axis, 0, start));
  parts.push_back(part);
  const Dim size = x.size(axis).unnamed();
  if (end != size) parts.push_back(x.slice(axis, end, size));
  return parts.size() == 1 ? parts[0] : concat(parts, axis);
}

Dim bound(const OpCall& call, std::size_t i, std::string_view name, const Dim& size, const Dim& fallback) {
  if (!call.has(i)) return fallback;
  const std::vector<Dim> dims = call.dims(i, name);
  if (dims.size() != 1) call.fail(fmt::format("{} has more than one element", name), "import_operand");
  return importing::slice_bound(dims[0], size, 0, call);
}

Results slice_scatter(const OpCall& call) {
  const Tensor x = call.tensor(0), source = call.tensor(1).to(x.dtype());
  const int axis = axis_argument(call, x.rank(), std::int64_t{0});
  const std::int64_t step = call.integer("step", 1);
  if (step < 1) call.fail(fmt::format("the argument step is {}", step), "import_attribute");
  const Dim size = x.size(axis).unnamed();
  const Dim start = bound(call, 2, "start", size, 0), last = bound(call, 3, "end", size, size);
  const bool is_empty = importing::sign_of(last - start) == importing::Sign::negative;
  const Dim end = is_empty ? start : last;
  Shape shape = x.shape();
  if (step > 1) {
    const Tensor positions = importing::integer_range(call, start, end, step, i64);
    shape.set(axis, positions.size(0));
    return {update_rows(x, positions, source.expand(shape), axis)};
  }
  shape.set(axis, end - start);
  return {replaced(x, axis, start, end, source.expand(shape))};
}

Results select_scatter(const OpCall& call) {
  const Tensor x = call.tensor(0), source = call.tensor(1).to(x.dtype());
  const int axis = axis_argument(call, x.rank());
  const Dim start = bound(call, 2, "index", x.size(axis).unnamed(), 0);
  return {replaced(x, axis, start, start + Dim(1), source.unsqueeze(axis))};
}

Results one_hot_op(const OpCall& call) {
  const std::int64_t classes = call.integer("num_classes", -1);
  if (classes < 0) call.fail("the number of classes follows from values", "import_size", "give num_classes");
  return {one_hot(call.tensor(0), classes, i64)};
}

}  // namespace

std::span<const OpRecord> aten_indexing_ops() {
  static constexpr OpRecord records[] = {
      aten("embedding", "weight indices", "padding_idx scale_grad_by_freq sparse", embedding_op),
      aten("index_select", "self index", "dim", index_select, Moves::first),
      aten("index.Tensor", "self indices", "", index_op, Moves::first),
      aten("gather", "self index", "dim sparse_grad", gather_op, Moves::first),
      aten("index_put", "self values indices", "accumulate", index_put),
      aten("take", "self index", "", take_op),
      aten("take_along_dim", "self indices", "dim", take_along_dim),
      aten("slice_scatter", "self src start end", "dim step", slice_scatter),
      aten("select_scatter", "self src index", "dim", select_scatter),
      aten("one_hot", "self", "num_classes", one_hot_op),
  };
  return records;
}

}  // namespace lathe::pt2
