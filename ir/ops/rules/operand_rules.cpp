#include "ir/ops/rules/operand_rules.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace lathe::ir::rules {

bool is_kind(DType dtype, unsigned kinds) {
  return (is_float(dtype) && (kinds & floats)) || (is_integer(dtype) && (kinds & integers)) ||
         (is_complex(dtype) && (kinds & complexes)) || (dtype == boolean && (kinds & booleans)) ||
         (is_byte(dtype) && (kinds & bytes));
}

namespace {

/// Returns text such as "a float, i64 or i32". i8 and u8 are integers too, but few ops compute with them.
std::string kinds_text(unsigned kinds) {
  std::vector<std::string_view> names;
  if (kinds & floats) names.push_back("float");
  if ((kinds & integers) && (kinds & bytes))
    names.push_back("integer");
  else if (kinds & integers)
    names.insert(names.end(), {"i64", "i32"});
  else if (kinds & bytes)
    names.insert(names.end(), {"i8", "u8"});
  if (kinds & booleans) names.push_back("bool");
  if (kinds & complexes) names.push_back("complex");
  const std::string article = names.front().starts_with('i') ? "an " : "a ";
  const std::string_view last = names.back();
  names.pop_back();
  return article + (names.empty() ? "" : fmt::format("{} or ", fmt::join(names, ", "))) + std::string(last);
}

std::string_view cast_hint(unsigned kinds) {
  if (kinds & floats) return "cast it first, as in x.to(f32)";
  if (kinds & integers) return "cast it first, as in x.to(i64)";
  if (kinds == bytes) return "quantize it first: q = round(x / scale).to(i8)";
  if (kinds == booleans) return "compare it with a number first, as in x != 0";
  return "view_as_complex makes complex numbers of pairs of reals";
}

bool no_negative_term(const Dim& dim) {
  const std::vector<Dim::Term> terms = dim.terms();
  return std::all_of(terms.begin(), terms.end(), [](const Dim::Term& term) { return term.coefficient >= 0; });
}

/// Returns the dim that two dims broadcast to; prefers named ones for display. `what` is only called for an error.
template <class What>
Dim broadcast_dim(const InferContext& ctx, const Dim& a, const Dim& b, int from_end, const What& what) {
  if (a == b) return one_size(a, b);
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  ctx.require_equal(
      a, b, "broadcast",
      fmt::format("{} do not broadcast: {} against {} in dim -{}", what(), a.to_string(), b.to_string(), from_end),
      "sizes aligned from the last dim must be equal or 1; unsqueeze inserts a dim of size 1");
  return one_size(a, b);
}

template <class What>
Shape broadcast(const InferContext& ctx, const Shape& a, const Shape& b, const What& what) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<Dim> dims(static_cast<std::size_t>(rank), Dim(1));
  for (int k = 1; k <= rank; ++k) {
    Dim& dim = dims[rank - k];
    if (k > a.rank())
      dim = b[b.rank() - k];
    else if (k > b.rank())
      dim = a[a.rank() - k];
    else
      dim = broadcast_dim(ctx, a[a.rank() - k], b[b.rank() - k], k, what);
  }
  return Shape(std::move(dims));
}

}  // namespace

Dim one_size(const Dim& a, const Dim& b) {
  if (a == b) return a.name().empty() ? b : a;
  return b.value() && !a.value() ? b : a;
}

Dim broadcast_size(const Dim& a, const Dim& b) {
  if (a.is(1) != b.is(1)) return a.is(1) ? b : a;
  return one_size(a, b);
}

std::string describe(const InferContext& ctx, int operand) {
  const Node& node = ctx.operand_node(operand);
  return node.name.empty() ? node.type.to_string() : fmt::format("{}: {}", node.name, node.type.to_string());
}

std::string operand_name(const InferContext& ctx, int operand) {
  const std::string& name = ctx.operand_node(operand).name;
  if (!name.empty()) return name;
  return ctx.arity() == 1 ? "the operand" : fmt::format("operand {}", operand);
}

void require_kind(const InferContext& ctx, int operand, unsigned kinds) {
  if (is_kind(ctx.operand(operand).dtype, kinds)) return;
  ctx.fail("dtype_kind",
           fmt::format("{} must have {} dtype, not {}", operand_name(ctx, operand), kinds_text(kinds),
                       describe(ctx, operand)),
           cast_hint(kinds));
}

namespace {

/// Returns the dtype to suggest for operands of two dtypes, of an op for these kinds: no cast to a boolean, and none
/// of a float to an integer, unless the op requires it.
DType suggested_dtype(DType a, DType b, unsigned kinds) {
  const auto rank = [&](DType dtype) {
    if (!is_kind(dtype, kinds)) return -1;
    return is_float(dtype) || is_complex(dtype) ? 2 : dtype == boolean ? 0 : 1;
  };
  return rank(b) > rank(a) ? b : a;
}

DType same_dtype(const InferContext& ctx, int first, unsigned kinds) {
  const DType dtype = ctx.operand(first).dtype;
  for (int i = first + 1; i < ctx.arity(); ++i)
    if (const DType other = ctx.operand(i).dtype; other != dtype)
      ctx.fail("dtype_match", fmt::format("{} and {} differ in dtype", describe(ctx, first), describe(ctx, i)),
               fmt::format("no dtype is promoted silently: cast one of them, as in x.to({})",
                           name(suggested_dtype(dtype, other, kinds))));
  return dtype;
}

}  // namespace

DType require_same_dtype(const InferContext& ctx, int first) { return same_dtype(ctx, first, ~0U); }

Shape broadcast_shapes(const InferContext& ctx, const Shape& a, const Shape& b, std::string_view what) {
  return broadcast(ctx, a, b, [&] { return what; });
}

Shape broadcast_operands(const InferContext& ctx, int first) {
  Shape shape = ctx.operand(first).shape;
  for (int i = first + 1; i < ctx.arity(); ++i)
    shape = broadcast(ctx, shape, ctx.operand(i).shape,
                      [&] { return fmt::format("{} and {}", describe(ctx, i - 1), describe(ctx, i)); });
  return shape;
}

void require_at_most(const InferContext& ctx, const Dim& a, const Dim& b, std::string_view label,
                     std::string_view message, std::string_view hint) {
  if (!no_negative_term(b - a)) ctx.require_at_most(a, b, label, message, hint);
}

void require_sizes(const InferContext& ctx, const Shape& shape) {
  for (const Dim& dim : shape)
    if (dim.value().value_or(-1) < 0)
      require_at_most(ctx, 0, dim, "dim_negative",
                      fmt::format("the shape {} has the negative size {}", shape.to_string(), dim.to_string()),
                      "sizes are zero or more");
}

DType require_dtype_attr(const InferContext& ctx, unsigned kinds) {
  const DType dtype = ctx.attr<DType>("dtype");
  ctx.require(is_kind(dtype, kinds), "dtype_kind",
              fmt::format("the result must have {} dtype, not {}", kinds_text(kinds), name(dtype)),
              "make it in a dtype of that kind and cast the result");
  return dtype;
}

std::vector<int> require_axes(const InferContext& ctx, const std::vector<std::int64_t>& dims, int rank) {
  std::vector<int> axes;
  for (const std::int64_t dim : dims) axes.push_back(ctx.axis(dim, rank));
  std::sort(axes.begin(), axes.end());
  const auto twice = std::adjacent_find(axes.begin(), axes.end());
  if (twice != axes.end())
    ctx.fail("dim_repeat", fmt::format("dim {} is named twice in [{}]", *twice, fmt::join(dims, ", ")),
             "name each dim once");
  return axes;
}

std::vector<int> normalize_axes(const std::vector<std::int64_t>& dims, int rank) {
  std::vector<int> axes;
  for (const std::int64_t dim : dims) axes.push_back(normalize_axis(dim, rank));
  std::sort(axes.begin(), axes.end());
  return axes;
}

Shape reduced_shape(const Shape& shape, const std::vector<int>& dims, bool keepdim) {
  Shape result;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!std::binary_search(dims.begin(), dims.end(), i))
      result.push_back(shape[i]);
    else if (keepdim)
      result.push_back(1);
  }
  return result;
}

TensorType elementwise_type(const InferContext& ctx, unsigned kinds) {
  const DType dtype = same_dtype(ctx, 0, kinds);
  for (int i = 0; i < ctx.arity(); ++i) require_kind(ctx, i, kinds);
  return TensorType::contiguous(dtype, broadcast_operands(ctx));
}

}  // namespace lathe::ir::rules
