#include "frontend/ops/ops.h"

#include "frontend/built.h"
#include "ir/ops/functional/functional_composites.h"

namespace lathe {

using detail::built;

namespace {

std::vector<ir::Value> values(std::span<const Tensor> tensors) {
  std::vector<ir::Value> result;
  for (const Tensor& t : tensors) result.push_back(t.value());
  return result;
}

/// Returns the tensor that `make` builds from a list of values.
template <class Make>
Tensor built_of_all(std::string_view op, const Where& at, const Make& make, std::span<const Tensor> operands) {
  if (operands.empty())
    throw UserError(Location(at), op, "no operands are given", "op_arity", "give at least one tensor");
  detail::check_operands(op, at, operands);
  const detail::Line line(operands[0], at);
  return Tensor(make(values(operands)));
}

using Values = std::vector<ir::Value>;

Tensor einsum_of(std::string_view equation, std::span<const Tensor> operands, const Where& at) {
  return built_of_all("einsum", at, [&](const Values& all) { return ir::einsum(equation, all); }, operands);
}
Tensor concat_of(std::span<const Tensor> parts, DimIndex dim, const Where& at) {
  return built_of_all("concat", at, [&](const Values& all) { return ir::concat(all, dim); }, parts);
}
Tensor stack_of(std::span<const Tensor> parts, DimIndex dim, const Where& at) {
  return built_of_all("stack", at, [&](const Values& all) { return ir::stack(all, dim); }, parts);
}

/// Whether dims of size 1, or missing leading dims, are all that `shape` lacks to be `wide`.
bool is_repeated(const Shape& shape, const Shape& wide) {
  if (shape == wide || shape.rank() > wide.rank()) return false;
  for (int k = 1; k <= shape.rank(); ++k) {
    const Dim &size = shape[shape.rank() - k], &to = wide[wide.rank() - k];
    if (!size.is(1) && !(size == to)) return false;
  }
  return true;
}

/// Returns whether an element is at the first step of a recurrence along dim d: a bool that broadcasts to `terms`.
ir::Value is_first_step(const ir::Value& terms, int d, bool reverse) {
  Shape along(std::vector<Dim>(static_cast<std::size_t>(terms.rank()), Dim(1)));
  along.set(d, terms.shape()[d].unnamed());
  const ir::Value steps = ir::iota(terms.builder(), along, d, i64);
  if (!reverse) return ir::eq(steps, 0.0);
  return ir::eq(steps, ir::sub(ir::dim_value(terms.builder(), along[d], i64), 1.0));
}

std::span<const Tensor> span_of(std::initializer_list<Tensor> list) { return {list.begin(), list.size()}; }

}  // namespace

Tensor detail::op(std::string_view name, const Where& at, std::initializer_list<const Tensor*> operands,
                  ir::Attributes attrs) {
  check_operands(name, at, operands);
  const Line line(**operands.begin(), at);
  std::vector<ir::Value> all;
  for (const Tensor* operand : operands) all.push_back(operand->value());
  const ir::Op* record = ir::find_op(name);
  LATHE_ASSERT(record);
  return Tensor(all[0].builder().add(*record, all, std::move(attrs)));
}

Tensor maximum(const Tensor& a, const Number& b, Where at) {
  return built("maximum", at, [&](auto& x) { return ir::maximum(x, b); }, a);
}
Tensor minimum(const Tensor& a, const Number& b, Where at) {
  return built("minimum", at, [&](auto& x) { return ir::minimum(x, b); }, a);
}
Tensor pow(const Tensor& a, const Number& b, Where at) {
  return built("pow", at, [&](auto& x) { return ir::pow(x, b); }, a);
}
Tensor where(const Tensor& condition, const Tensor& a, const Number& b, Where at) {
  return built("where", at, [&](auto& x, auto& y) { return ir::where(x, y, b); }, condition, a);
}
Tensor where(const Tensor& condition, const Number& a, const Tensor& b, Where at) {
  return built("where", at, [&](auto& x, auto& y) { return ir::where(x, a, y); }, condition, b);
}

Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands, Where at) {
  return einsum_of(equation, span_of(operands), at);
}
Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands, Where at) {
  return einsum_of(equation, operands, at);
}

Tensor grouped_matmul(const Tensor& x, const Tensor& offsets, const std::vector<Tensor>& weights, Where at) {
  std::vector<Tensor> operands = {x, offsets};
  operands.insert(operands.end(), weights.begin(), weights.end());
  return built_of_all(
      "grouped_matmul", at,
      [&](const Values& all) { return ir::grouped_matmul(all[0], all[1], std::span(all).subspan(2)); }, operands);
}

Tensor gather(const Tensor& table, const Tensor& indices, DimIndex dim, Where at) {
  return built("gather", at, [&](auto& x, auto& y) { return ir::gather(x, y, dim); }, table, indices);
}
Tensor embedding(const Tensor& ids, const Tensor& table, Where at) {
  return built("embedding", at, [&](auto& x, auto& y) { return ir::gather(x, y, 0); }, table, ids);
}
Tensor embedding(const Tensor& ids, const Tensor& table, std::int64_t padding_idx, Where at) {
  return built(
      "embedding", at,
      [&](auto& x, auto& y) {
        const ir::Value rows = ir::gather(x, y, 0);
        const ir::Value is_padding = ir::eq(ir::unsqueeze(y, -1), padding_idx);
        return ir::where(is_padding, ir::stop_gradient(rows), rows);
      },
      table, ids);
}
Tensor scatter_add(const Tensor& indices, const Tensor& updates, const Dim& size, DimIndex dim, Where at) {
  return built(
      "scatter_add", at, [&](auto& x, auto& y) { return ir::scatter_add(x, y, size, dim); }, indices, updates);
}
Tensor update_rows(const Tensor& a, const Tensor& positions, const Tensor& rows, DimIndex dim, Where at) {
  return built(
      "update_rows", at, [&](auto& x, auto& p, auto& y) { return ir::update_rows(x, p, y, dim); }, a, positions,
      rows);
}

Tensor scatter(const Tensor& a, const Tensor& indices, const Tensor& source, DimIndex dim, Where at) {
  return built(
      "scatter", at, [&](auto& x, auto& p, auto& y) { return ir::scatter(x, p, y, dim); }, a, indices, source);
}

Tensor take_along(const Tensor& a, const Tensor& indices, DimIndex dim, Where at) {
  return built("take_along", at, [&](auto& x, auto& y) { return ir::take_along(x, y, dim); }, a, indices);
}
Tensor concat(std::initializer_list<Tensor> parts, DimIndex dim, Where at) {
  return concat_of(span_of(parts), dim, at);
}
Tensor concat(const std::vector<Tensor>& parts, DimIndex dim, Where at) { return concat_of(parts, dim, at); }
Tensor stack(std::initializer_list<Tensor> parts, DimIndex dim, Where at) {
  return stack_of(span_of(parts), dim, at);
}
Tensor stack(const std::vector<Tensor>& parts, DimIndex dim, Where at) { return stack_of(parts, dim, at); }
Tensor pad(const Tensor& a, DimIndex dim, const Dim& low, const Dim& high, Where at) {
  return built("pad", at, [&](auto& x) { return ir::pad(x, dim, low, high); }, a);
}

Tensor unfold(const Tensor& a, DimIndex dim, const UnfoldOptions& o, Where at) {
  return built("unfold", at, [&](auto& x) { return ir::unfold(x, dim, o.size, o.step, o.dilation); }, a);
}

Tensor linear_recurrence(const Tensor& a, const Tensor& b, DimIndex dim, const RecurrenceOptions& options, Where at) {
  const auto steps = [&](const ir::Value& factors, const ir::Value& terms) {
    const ir::Value all = is_repeated(factors.shape(), terms.shape()) ? ir::expand(factors, terms.shape()) : factors;
    return ir::linear_recurrence(all, terms, dim, options.reverse);
  };
  if (options.initial.is_empty()) return built("linear_recurrence", at, steps, a, b);
  const auto from_initial = [&](const ir::Value& factors, const ir::Value& terms, const ir::Value& initial) {
    const int d = static_cast<int>(ir::from_front(terms, dim));
    const ir::Value first = ir::mul(factors, ir::unsqueeze(initial, d));
    return steps(factors, ir::add(terms, ir::where(is_first_step(terms, d, options.reverse), first, 0.0)));
  };
  return built("linear_recurrence", at, from_initial, a, b, options.initial);
}

Tensor solve_triangular(const Tensor& a, const Tensor& b, const TriangularOptions& options, Where at) {
  return built(
      "solve_triangular", at,
      [&](auto& x, auto& y) {
        return ir::solve_triangular(x, y, options.upper, options.transpose, options.unit_diagonal);
      },
      a, b);
}

Tensor cumsum(const Tensor& a, DimIndex dim, const CumsumOptions& options, Where at) {
  return built("cumsum", at, [&](auto& x) { return ir::cumsum(x, dim, options.exclusive, options.reverse); }, a);
}
Ranked sort(const Tensor& a, DimIndex dim, Flag descending, Where at) {
  const Tensor order = argsort(a, dim, descending, at);
  return {take_along(a, order, dim, at), order};
}
Tensor argsort(const Tensor& a, DimIndex dim, Flag descending, Where at) {
  return built("argsort", at, [&](auto& x) { return ir::argsort(x, dim, descending); }, a);
}
Ranked top_k(const Tensor& a, const Dim& k, DimIndex dim, Flag largest, Where at) {
  const Tensor indices = built("top_k", at, [&](auto& x) { return ir::top_k(x, k, dim, largest); }, a);
  return {take_along(a, indices, dim, at), indices};
}

Tensor dropout(const Tensor& a, const Tensor& random_state, double p, Where at) {
  return built("dropout", at, [&](auto& x, auto& y) { return ir::dropout(x, y, p); }, a, random_state);
}
Causal Causal::from(const Tensor& offset) {
  Causal causal(true);
  causal.tensor_ = offset;
  return causal;
}
Causal Causal::from(const Dim& offset) {
  Causal causal(true);
  causal.size_ = offset;
  return causal;
}
std::optional<Tensor> Causal::offset(ir::GraphBuilder& graph) const {
  return size_ ? Tensor(ir::dim_value(graph, *size_, i64)) : tensor_;
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask, double scale,
                 const Causal& causal, Flag zero_masked, Where at) {
  detail::check_operands("attention", at, {&q, &k, &v});
  const detail::Line line(q, at);
  const auto value_of = [&](const std::optional<Tensor>& given) -> std::optional<ir::Value> {
    if (!given) return std::nullopt;
    detail::check_operands("attention", at, {&q, &*given});
    return given->value();
  };
  return Tensor(ir::attention(q.value(), k.value(), v.value(), value_of(mask), scale, causal.is_causal(), zero_masked,
                              value_of(causal.offset(q.builder()))));
}

}  // namespace lathe
