#include "frontend/tensor.h"

#include <fmt/core.h>

#include "ir/ops/functional.h"
#include "ir/support/error.h"

namespace lathe {

namespace detail {

namespace {
/// A location with a file is pinned by a CallSite; one without only carries the scope.
Location locate(const Location& current, const Where& at) {
  return current.file().empty() ? Location(at, current.scope()) : current;
}
}  // namespace

Line::Line(ir::GraphBuilder& builder, const Where& at) : at_(builder, locate(builder.location(), at)) {}

Line::Line(ir::GraphBuilder& builder, const Where& at, std::string_view scope)
    : at_(builder, [&] {
        const Location line = locate(builder.location(), at);
        return Location(line.file(), line.line(), scope);
      }()) {}

}  // namespace detail

namespace {

/// Runs `make` at the user's line.
template <class Make>
Tensor built(const Tensor& t, const Where& at, Make make) {
  const detail::Line line(t, at);
  return Tensor(make());
}

std::vector<Tensor> tensors(const std::vector<ir::Value>& values) {
  return std::vector<Tensor>(values.begin(), values.end());
}

}  // namespace

Dim Tensor::size(int dim, Where at) const {
  const int i = dim < 0 ? dim + rank() : dim;
  if (i < 0 || i >= rank())
    throw UserError(Location(at), "size",
                    fmt::format("dim {} is out of range for {}", dim, value_.type().to_string()), "dim_range",
                    rank() == 0 ? "a scalar has no dims" : fmt::format("use {} to {}", -rank(), rank() - 1));
  return shape()[i];
}

Tensor Tensor::named(std::string_view name, Where at) const {
  const std::string& old = value_.node().name;
  if (!old.empty() && old != name)
    return built(*this, at, [&] {
      const ir::Value alias = ir::view(value_, shape());
      alias.builder().set_name(alias, name);
      return alias;
    });
  builder().set_name(value_, name);
  return *this;
}

Tensor Tensor::view(const Shape& shape, Where at) const {
  return built(*this, at, [&] { return ir::view(value_, shape); });
}
Tensor Tensor::reshape(const Shape& shape, Where at) const {
  return built(*this, at, [&] { return ir::reshape(value_, shape); });
}
Tensor Tensor::contiguous(Where at) const {
  return built(*this, at, [&] { return ir::contiguous(value_); });
}
Tensor Tensor::transpose(int dim0, int dim1, Where at) const {
  return built(*this, at, [&] { return ir::transpose(value_, dim0, dim1); });
}
Tensor Tensor::permute(const std::vector<std::int64_t>& dims, Where at) const {
  return built(*this, at, [&] { return ir::permute(value_, dims); });
}
Tensor Tensor::expand(const Shape& shape, Where at) const {
  return built(*this, at, [&] { return ir::expand(value_, shape); });
}
Tensor Tensor::unsqueeze(int dim, Where at) const {
  return built(*this, at, [&] { return ir::unsqueeze(value_, dim); });
}
Tensor Tensor::squeeze(int dim, Where at) const {
  return built(*this, at, [&] { return ir::squeeze(value_, dim); });
}
Tensor Tensor::flatten(int first, int last, Where at) const {
  return built(*this, at, [&] { return ir::flatten(value_, first, last); });
}
Tensor Tensor::slice(int dim, const Dim& start, const Dim& stop, std::int64_t step, Where at) const {
  return built(*this, at, [&] { return ir::slice(value_, dim, start, stop, step); });
}
Tensor Tensor::select(int dim, const Dim& index, Where at) const {
  return built(*this, at, [&] { return ir::select(value_, dim, index); });
}
std::vector<Tensor> Tensor::split(const Dim& size, int dim, Where at) const {
  const detail::Line line(*this, at);
  return tensors(ir::split(value_, size, dim));
}
std::vector<Tensor> Tensor::chunk(std::int64_t chunks, int dim, Where at) const {
  const detail::Line line(*this, at);
  return tensors(ir::chunk(value_, chunks, dim));
}
Tensor Tensor::diagonal(int dim0, int dim1, Where at) const {
  return built(*this, at, [&] { return ir::diagonal(value_, dim0, dim1); });
}
Tensor Tensor::repeat_interleave(std::int64_t times, int dim, Where at) const {
  return built(*this, at, [&] { return ir::repeat_interleave(value_, times, dim); });
}
Tensor Tensor::to(DType dtype, Where at) const {
  return built(*this, at, [&] { return ir::cast(value_, dtype); });
}

Tensor Tensor::sum(const Axes& axes, bool keepdim, Where at) const {
  return built(*this, at, [&] { return ir::sum(value_, axes.dims, keepdim); });
}
Tensor Tensor::mean(const Axes& axes, bool keepdim, Where at) const {
  return built(*this, at, [&] { return ir::mean(value_, axes.dims, keepdim); });
}
Tensor Tensor::max(const Axes& axes, bool keepdim, Where at) const {
  return built(*this, at, [&] { return ir::max(value_, axes.dims, keepdim); });
}
Tensor Tensor::min(const Axes& axes, bool keepdim, Where at) const {
  return built(*this, at, [&] { return ir::min(value_, axes.dims, keepdim); });
}
Tensor Tensor::var(const Axes& axes, bool keepdim, std::int64_t correction, Where at) const {
  return built(*this, at, [&] { return ir::var(value_, axes.dims, keepdim, correction); });
}
Tensor Tensor::logsumexp(int dim, bool keepdim, Where at) const {
  return built(*this, at, [&] { return ir::logsumexp(value_, dim, keepdim); });
}
Tensor Tensor::argmax(int dim, Where at) const {
  return built(*this, at, [&] { return ir::argmax(value_, dim); });
}
Tensor Tensor::softmax(int dim, Where at) const {
  return built(*this, at, [&] { return ir::softmax(value_, dim); });
}
Tensor Tensor::log_softmax(int dim, Where at) const {
  return built(*this, at, [&] { return ir::log_softmax(value_, dim); });
}
Tensor Tensor::masked_fill(const Tensor& mask, double value, Where at) const {
  return built(*this, at, [&] { return ir::masked_fill(value_, mask.value(), value); });
}
Tensor Tensor::matmul(const Tensor& other, Where at) const {
  return built(*this, at, [&] { return ir::matmul(value_, other.value()); });
}
Tensor Tensor::pow(double exponent, Where at) const {
  return built(*this, at, [&] { return ir::pow(value_, exponent); });
}
Tensor Tensor::detach(Where at) const {
  return built(*this, at, [&] { return ir::stop_gradient(value_); });
}

}  // namespace lathe
