#include "frontend/tensor.h"

#include <fmt/core.h>

#include "frontend/built.h"
#include "frontend/graph.h"
#include "frontend/nn/module.h"
#include "ir/ops/functional/functional_composites.h"
#include "ir/support/error.h"

namespace lathe {

namespace {
constexpr std::string_view assign_first = "assign a tensor of a Graph to it before it is used";
}

namespace detail {

/// A location with a file was set by a CallSite; one without a file only carries the scope.
Location line_of(const ir::GraphBuilder& builder, const Where& at) {
  const Location& current = builder.location();
  return current.file().empty() ? Location(at, current.scope()) : current;
}

Line::Line(ir::GraphBuilder& builder, const Where& at) : at_(builder, line_of(builder, at)) {}

Line::Line(ir::GraphBuilder& builder, const Where& at, std::string_view scope)
    : at_(builder, [&] {
        const Location line = line_of(builder, at);
        return Location(line.file(), line.line(), scope);
      }()) {}

namespace {
/// `tensor_of(i)` returns operand i of `count`.
template <class TensorOf>
void check_each(std::string_view op, const Where& at, std::size_t count, const TensorOf& tensor_of) {
  const Tensor* first = nullptr;
  ir::GraphBuilder* innermost = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor& operand = tensor_of(i);
    if (operand.is_empty()) continue;
    if (!first) first = &operand;
    innermost = &(innermost ? *innermost : operand.builder()).innermost({&operand.value(), 1});
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor& operand = tensor_of(i);
    if (first && !operand.is_empty() && innermost->can_own(operand.value())) continue;
    const Location loc = first ? line_of(first->builder(), at) : Location(at);
    if (!first || operand.is_empty())
      throw UserError(loc, op,
                      count == 1 ? "the tensor is empty" : fmt::format("operand {} of {} is empty", i + 1, count),
                      "tensor_empty", assign_first);
    const ir::GraphBuilder::At line(first->builder(), loc);
    first->builder().require_own(op, operand.value());
  }
}
}  // namespace

void check_operands(std::string_view op, const Where& at, std::initializer_list<const Tensor*> operands) {
  check_each(op, at, operands.size(), [&](std::size_t i) -> const Tensor& { return *operands.begin()[i]; });
}

void check_operands(std::string_view op, const Where& at, std::span<const Tensor> operands) {
  check_each(op, at, operands.size(), [&](std::size_t i) -> const Tensor& { return operands[i]; });
}

}  // namespace detail

using detail::built;

namespace {

std::vector<Tensor> tensors(const std::vector<ir::Value>& values) {
  return std::vector<Tensor>(values.begin(), values.end());
}

}  // namespace

Tensor::Tensor(const ir::Value& value) : graph_(value.builder().weak_from_this().lock()), value_(value) {}

Tensor::Tensor(const nn::Parameter& parameter, Where at) : Tensor(parameter.here(at)) {}

Graph Tensor::graph(Where at) const {
  (void)value(at);
  auto state = std::dynamic_pointer_cast<detail::GraphState>(graph_);
  if (!state)
    throw UserError(Location(at), "tensor", "the tensor belongs to a builder without a Graph", "tensor_graph",
                    "build it in a Graph");
  return Graph(std::move(state));
}

void Tensor::throw_empty(const Where& at) {
  throw UserError(Location(at), "tensor", "the tensor is empty", "tensor_empty", assign_first);
}

Dim Tensor::size(DimIndex dim, Where at) const {
  const int rank = value(at).rank(), i = dim.value < 0 ? dim.value + rank : dim.value;
  if (i < 0 || i >= rank)
    throw UserError(detail::line_of(builder(), at), "size",
                    fmt::format("dim {} is out of range for {}", dim.value, value().type().to_string()), "dim_range",
                    rank == 0 ? "a scalar has no dims" : fmt::format("use {} to {}", -rank, rank - 1));
  return shape()[i];
}

Tensor Tensor::named(std::string_view name, Where at) const {
  const ir::Value& own = value(at);
  const std::string& old = own.node().name;
  if (old.empty() || old == name) {
    own.builder().set_name(own, name);
    return *this;
  }
  const Tensor alias = view(own.shape(), at);
  alias.builder().set_name(alias.value(), name);
  return alias;
}

Tensor Tensor::view(const Shape& shape, Where at) const {
  return built("view", at, [&](auto& a) { return ir::view(a, shape); }, *this);
}
Tensor Tensor::reshape(const Shape& shape, Where at) const {
  return built("reshape", at, [&](auto& a) { return ir::reshape(a, shape); }, *this);
}
Tensor Tensor::contiguous(Where at) const { return built("contiguous", at, ir::contiguous, *this); }
Tensor Tensor::transpose(DimIndex dim0, DimIndex dim1, Where at) const {
  return built("transpose", at, [&](auto& a) { return ir::transpose(a, dim0, dim1); }, *this);
}
Tensor Tensor::permute(const std::vector<std::int64_t>& dims, Where at) const {
  return built("permute", at, [&](auto& a) { return ir::permute(a, dims); }, *this);
}
Tensor Tensor::expand(const Shape& shape, Where at) const {
  return built("expand", at, [&](auto& a) { return ir::expand(a, shape); }, *this);
}
Tensor Tensor::unsqueeze(DimIndex dim, Where at) const {
  return built("unsqueeze", at, [&](auto& a) { return ir::unsqueeze(a, dim); }, *this);
}
Tensor Tensor::squeeze(DimIndex dim, Where at) const {
  return built("squeeze", at, [&](auto& a) { return ir::squeeze(a, dim); }, *this);
}
Tensor Tensor::flatten(DimIndex first, DimIndex last, Where at) const {
  return built("flatten", at, [&](auto& a) { return ir::flatten(a, first, last); }, *this);
}
Tensor Tensor::slice(DimIndex dim, const Dim& start, const Dim& stop, std::int64_t step, Where at) const {
  return built("slice", at, [&](auto& a) { return ir::slice(a, dim, start, stop, step); }, *this);
}
Tensor Tensor::slice(DimIndex dim, const Dim& start, Where at) const {
  return slice(dim, start, size(dim, at), 1, at);
}
Tensor Tensor::select(DimIndex dim, const Dim& index, Where at) const {
  return built("select", at, [&](auto& a) { return ir::select(a, dim, index); }, *this);
}
std::vector<Tensor> Tensor::split(const Dim& size, DimIndex dim, Where at) const {
  detail::check_operands("split", at, {this});
  const detail::Line line(*this, at);
  return tensors(ir::split(value(), size, dim));
}
std::vector<Tensor> Tensor::split(std::initializer_list<Dim> sizes, DimIndex dim, Where at) const {
  detail::check_operands("split", at, {this});
  const Dim whole = size(dim, at);
  Dim first = 0;
  std::vector<Tensor> parts;
  for (const Dim& size : sizes) {
    if (size.value().value_or(0) < 0)
      throw UserError(detail::line_of(builder(at), at), "split",
                      fmt::format("the size {} is negative", size.to_string()), "split_size",
                      "give sizes that cover the dim");
    parts.push_back(slice(dim, first, first + size, 1, at));
    first = first + size;
  }
  if (first.unnamed() != whole.unnamed())
    throw UserError(detail::line_of(builder(at), at), "split",
                    fmt::format("the sizes add up to {}, and the dim is {}", first.to_string(), whole.to_string()),
                    "split_size", "give sizes that cover the dim");
  return parts;
}
std::vector<Tensor> Tensor::chunk(std::int64_t chunks, DimIndex dim, Where at) const {
  detail::check_operands("chunk", at, {this});
  const detail::Line line(*this, at);
  return tensors(ir::chunk(value(), chunks, dim));
}
Tensor Tensor::diagonal(DimIndex dim0, DimIndex dim1, Where at) const {
  return built("diagonal", at, [&](auto& a) { return ir::diagonal(a, dim0, dim1); }, *this);
}
Tensor Tensor::repeat_interleave(std::int64_t times, DimIndex dim, Where at) const {
  return built("repeat_interleave", at, [&](auto& a) { return ir::repeat_interleave(a, times, dim); }, *this);
}
Tensor Tensor::to(DType dtype, Where at) const {
  if (this->dtype(at) == dtype) return *this;
  return built("to", at, [&](auto& a) { return ir::cast(a, dtype); }, *this);
}

Tensor Tensor::sum(const Axes& axes, Flag keepdim, Where at) const {
  return built("sum", at, [&](auto& a) { return ir::sum(a, axes.dims, keepdim); }, *this);
}
Tensor Tensor::mean(const Axes& axes, Flag keepdim, Where at) const {
  return built("mean", at, [&](auto& a) { return ir::mean(a, axes.dims, keepdim); }, *this);
}
Tensor Tensor::max(const Axes& axes, Flag keepdim, Where at) const {
  return built("max", at, [&](auto& a) { return ir::max(a, axes.dims, keepdim); }, *this);
}
Tensor Tensor::min(const Axes& axes, Flag keepdim, Where at) const {
  return built("min", at, [&](auto& a) { return ir::min(a, axes.dims, keepdim); }, *this);
}
Tensor Tensor::var(const Axes& axes, Flag keepdim, std::int64_t correction, Where at) const {
  return built("var", at, [&](auto& a) { return ir::var(a, axes.dims, keepdim, correction); }, *this);
}
Tensor Tensor::logsumexp(DimIndex dim, Flag keepdim, Where at) const {
  return built("logsumexp", at, [&](auto& a) { return ir::logsumexp(a, dim, keepdim); }, *this);
}
Tensor Tensor::argmax(DimIndex dim, Where at) const {
  return built("argmax", at, [&](auto& a) { return ir::argmax(a, dim); }, *this);
}
Tensor Tensor::softmax(DimIndex dim, Where at) const {
  return built("softmax", at, [&](auto& a) { return ir::softmax(a, dim); }, *this);
}
Tensor Tensor::log_softmax(DimIndex dim, Where at) const {
  return built("log_softmax", at, [&](auto& a) { return ir::log_softmax(a, dim); }, *this);
}
Tensor Tensor::masked_fill(const Tensor& mask, const Number& value, Where at) const {
  return built("masked_fill", at, [&](auto& a, auto& m) { return ir::masked_fill(a, m, value); }, *this, mask);
}
Tensor Tensor::matmul(const Tensor& other, Where at) const { return built("matmul", at, ir::matmul, *this, other); }
Tensor Tensor::pow(double exponent, Where at) const {
  return built("pow", at, [&](auto& a) { return ir::pow(a, exponent); }, *this);
}
Tensor Tensor::detach(Where at) const { return built("detach", at, ir::stop_gradient, *this); }

std::int64_t from_front(const Tensor& a, DimIndex dim) {
  return a.value_ ? ir::from_front(*a.value_, dim) : dim.value;
}

}  // namespace lathe
