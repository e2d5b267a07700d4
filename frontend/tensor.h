#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <source_location>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ir/tensor/builder.h"

namespace lathe {

class Graph;
class Tensor;
struct Ranked;
struct UnfoldOptions;

namespace nn {
class Parameter;
}

/// The user's line. Every DSL function ends in `Where at = Where::current()`, so that nodes, errors and profiles name
/// the line that wrote the op.
using Where = std::source_location;

/// The index of a dim; negative ones count from the end. Only integers convert: x.squeeze(true) does not compile.
struct DimIndex {
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  DimIndex(T position) : value(static_cast<int>(position)) {}  // NOLINT(google-explicit-constructor)
  operator int() const { return value; }                       // NOLINT(google-explicit-constructor)
  int value;
};

/// A bool that numbers do not convert to: x.sum(0, 1) does not compile, x.sum({0, 1}) sums two dims.
struct Flag {
  Flag(std::same_as<bool> auto flag) : value(flag) {}  // NOLINT(google-explicit-constructor)
  operator bool() const { return value; }              // NOLINT(google-explicit-constructor)
  bool value;
};

/// Dims to reduce: one number, a list, or nothing for all dims. Negative ones count from the end. x.sum(true) does
/// not compile.
struct Axes {
  Axes() = default;
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Axes(T axis) : dims{static_cast<std::int64_t>(axis)} {}  // NOLINT(google-explicit-constructor)
  Axes(std::initializer_list<DimIndex> axes) : dims(axes.begin(), axes.end()) {}
  std::vector<std::int64_t> dims;
};

/// An index into the first dim: x[0]; x[-1], the last one; x[length - 1]; or x[indices], which gathers rows.
struct RowIndex {
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  RowIndex(T number, Where w = Where::current())  // NOLINT(google-explicit-constructor)
      : position(static_cast<std::int64_t>(number)), at(w) {}
  RowIndex(const Dim& number, Where w = Where::current())  // NOLINT(google-explicit-constructor)
      : position(number), at(w) {}
  RowIndex(const Tensor& numbers, Where w = Where::current())  // NOLINT(google-explicit-constructor)
      : position(0), indices(&numbers), at(w) {}
  Dim position;
  const Tensor* indices = nullptr;
  Where at;
};

/// A value of a Graph. Cheap to copy; it keeps everything that the Graph has built alive. Methods add ops by the
/// rules of docs/ops.md, and raise every error at the caller's line. Negative dims count from the end. Numbers take
/// the tensor's dtype.
///
/// A default-constructed Tensor is empty: any use except assignment throws UserError [tensor_empty]. Tensors of
/// different graphs cannot be combined [op_other_graph].
class Tensor {
 public:
  Tensor() = default;
  /// A value of a builder without a Graph must not outlive that builder.
  explicit Tensor(const ir::Value& value);
  /// A parameter of a module, in the graph of the module or, during a call of a module, in the graph of the call.
  /// Throws UserError [parameter_graph] elsewhere, and for a parameter that is stored quantized.
  Tensor(const nn::Parameter& parameter, Where at = Where::current());  // NOLINT(google-explicit-constructor)
  // Copy-only: a moved-from tensor keeps its value.
  Tensor(const Tensor&) = default;
  Tensor& operator=(const Tensor&) = default;
  ~Tensor() = default;

  bool is_empty() const { return !value_; }
  const ir::Value& value(Where at = Where::current()) const {
    if (!value_) throw_empty(at);
    return *value_;
  }
  ir::GraphBuilder& builder(Where at = Where::current()) const { return value(at).builder(); }
  /// Returns the Graph of the tensor. Throws UserError [tensor_graph] for a value of a builder without one.
  Graph graph(Where at = Where::current()) const;
  const Shape& shape(Where at = Where::current()) const { return value(at).shape(); }
  DType dtype(Where at = Where::current()) const { return value(at).dtype(); }
  int rank(Where at = Where::current()) const { return value(at).rank(); }
  /// Returns the size of one dim, including its name: x.size(-1). Throws UserError [dim_range].
  Dim size(DimIndex dim, Where at = Where::current()) const;

  /// Names the value in dumps and for ir::interpret_named. The first name wins. If the value already has another name
  /// (equal ops are one node), a view of the same shape gets the new one.
  Tensor named(std::string_view name, Where at = Where::current()) const;

  // ---- layout. Views do not copy.                                                    x: [B, S, h, d]
  Tensor view(const Shape& shape, Where at = Where::current()) const;     ///< only if strides allow it [view_stride]
  Tensor reshape(const Shape& shape, Where at = Where::current()) const;  ///< a view if possible, else a copy
  Tensor contiguous(Where at = Where::current()) const;                   ///< copies only when needed
  Tensor transpose(DimIndex dim0, DimIndex dim1, Where at = Where::current()) const;  ///< (1, 2) -> [B, h, S, d]
  Tensor permute(const std::vector<std::int64_t>& dims, Where at = Where::current()) const;
  Tensor expand(const Shape& shape, Where at = Where::current()) const;  ///< dims of size 1 are repeated
  Tensor unsqueeze(DimIndex dim, Where at = Where::current()) const;     ///< (1) -> [B, 1, S, h, d]
  Tensor squeeze(DimIndex dim, Where at = Where::current()) const;
  Tensor flatten(DimIndex first, DimIndex last, Where at = Where::current()) const;  ///< (2, 3) -> [B, S, h*d]
  Tensor slice(DimIndex dim, const Dim& start, const Dim& stop, std::int64_t step = 1,
               Where at = Where::current()) const;
  Tensor slice(DimIndex dim, const Dim& start, Where at = Where::current()) const;   ///< from `start` to the end
  Tensor select(DimIndex dim, const Dim& index, Where at = Where::current()) const;  ///< (1, 0) -> [B, h, d]
  /// x[i]: the part of the first dim at one index, without that dim; for a tensor of integers, the rows at all of
  /// them: [n, ..][indices [i..]] -> [i.., ..]. [slice_range] [index_range]
  Tensor operator[](const RowIndex& index) const;
  /// Returns slices of `size` indices of a dim each; the last one may have fewer. [split_size]
  std::vector<Tensor> split(const Dim& size, DimIndex dim, Where at = Where::current()) const;
  /// Returns slices of the given sizes, which are not negative and add up to that of the dim. [split_size]
  std::vector<Tensor> split(std::initializer_list<Dim> sizes, DimIndex dim, Where at = Where::current()) const;
  /// Returns `chunks` slices of equal size along a dim. [chunk_size]
  std::vector<Tensor> chunk(std::int64_t chunks, DimIndex dim, Where at = Where::current()) const;
  Tensor unfold(DimIndex dim, const UnfoldOptions& windows, Where at = Where::current()) const;
  Tensor diagonal(DimIndex dim0 = 0, DimIndex dim1 = 1, Where at = Where::current()) const;
  Tensor repeat_interleave(std::int64_t times, DimIndex dim,
                           Where at = Where::current()) const;  ///< (2, 2) -> [B, S, 2h, d]
  Tensor to(DType dtype, Where at = Where::current()) const;    ///< returns itself if it has that dtype

  // ---- reductions; no axes: over all dims
  Tensor sum(const Axes& axes = {}, Flag keepdim = false, Where at = Where::current()) const;
  Tensor mean(const Axes& axes = {}, Flag keepdim = false, Where at = Where::current()) const;
  Tensor max(const Axes& axes = {}, Flag keepdim = false, Where at = Where::current()) const;
  Tensor min(const Axes& axes = {}, Flag keepdim = false, Where at = Where::current()) const;
  Tensor var(const Axes& axes = {}, Flag keepdim = false, std::int64_t correction = 1,
             Where at = Where::current()) const;
  Tensor logsumexp(DimIndex dim, Flag keepdim = false, Where at = Where::current()) const;
  Tensor argmax(DimIndex dim, Where at = Where::current()) const;  ///< i64; the first one on a tie
  Tensor argmin(DimIndex dim, Where at = Where::current()) const;  ///< i64; the first one on a tie
  Tensor prod(const Axes& axes = {}, Flag keepdim = false, Where at = Where::current()) const;
  Tensor any(const Axes& axes = {}, Flag keepdim = false, Where at = Where::current()) const;  ///< bool
  Tensor all(const Axes& axes = {}, Flag keepdim = false, Where at = Where::current()) const;  ///< bool
  /// The root of the sum of squares.
  Tensor norm(const Axes& axes = {}, Flag keepdim = false, Where at = Where::current()) const;

  // ---- element-wise; the functions of the same names have the details
  Tensor abs(Where at = Where::current()) const;
  Tensor sign(Where at = Where::current()) const;
  Tensor floor(Where at = Where::current()) const;
  Tensor ceil(Where at = Where::current()) const;  ///< the smallest whole number not below the element
  Tensor round(Where at = Where::current()) const;
  Tensor trunc(Where at = Where::current()) const;  ///< the next whole number towards 0
  Tensor exp(Where at = Where::current()) const;
  Tensor expm1(Where at = Where::current()) const;
  Tensor log(Where at = Where::current()) const;
  Tensor log1p(Where at = Where::current()) const;
  Tensor sqrt(Where at = Where::current()) const;
  Tensor rsqrt(Where at = Where::current()) const;
  Tensor square(Where at = Where::current()) const;
  Tensor reciprocal(Where at = Where::current()) const;
  Tensor sin(Where at = Where::current()) const;
  Tensor cos(Where at = Where::current()) const;
  Tensor tanh(Where at = Where::current()) const;
  Tensor erf(Where at = Where::current()) const;
  Tensor sigmoid(Where at = Where::current()) const;
  Tensor softplus(Where at = Where::current()) const;
  Tensor relu(Where at = Where::current()) const;
  Tensor gelu(bool tanh_approximation = false, Where at = Where::current()) const;
  Tensor silu(Where at = Where::current()) const;
  Tensor clamp(const Number& low, const Number& high, Where at = Where::current()) const;
  Tensor maximum(const Tensor& other, Where at = Where::current()) const;
  Tensor maximum(const Number& other, Where at = Where::current()) const;
  Tensor minimum(const Tensor& other, Where at = Where::current()) const;
  Tensor minimum(const Number& other, Where at = Where::current()) const;
  Tensor bitwise_and(const Tensor& other, Where at = Where::current()) const;
  Tensor bitwise_or(const Tensor& other, Where at = Where::current()) const;
  Tensor bitwise_xor(const Tensor& other, Where at = Where::current()) const;
  Tensor bitwise_not(Where at = Where::current()) const;
  Tensor conj(Where at = Where::current()) const;
  Tensor isnan(Where at = Where::current()) const;     ///< bool
  Tensor isfinite(Where at = Where::current()) const;  ///< bool: neither NaN nor infinite
  /// The elements where the condition is true, those of `other` elsewhere.
  Tensor where(const Tensor& condition, const Tensor& other, Where at = Where::current()) const;
  Tensor where(const Tensor& condition, const Number& other, Where at = Where::current()) const;

  // ---- ops that read well as methods
  Tensor tril(std::int64_t diagonal = 0, Where at = Where::current()) const;
  Tensor triu(std::int64_t diagonal = 0, Where at = Where::current()) const;
  Tensor cumsum(DimIndex dim, Where at = Where::current()) const;
  /// The elements of a dim in reverse order.
  Tensor flip(DimIndex dim, Where at = Where::current()) const;
  /// torch.roll along a dim.
  Tensor roll(const Dim& shift, DimIndex dim, Where at = Where::current()) const;
  Tensor outer(const Tensor& other, Where at = Where::current()) const;  ///< [n], other [m] -> [n, m]
  Tensor gather(const Tensor& indices, DimIndex dim = 0, Where at = Where::current()) const;
  /// torch.gather: the element at each index along dim; indices have the rank of the tensor.
  Tensor take_along(const Tensor& indices, DimIndex dim, Where at = Where::current()) const;
  /// torch.scatter: the tensor with source[.., t, ..] at position indices[.., t, ..] along dim.
  Tensor scatter(const Tensor& indices, const Tensor& source, DimIndex dim, Where at = Where::current()) const;
  /// The tensor with its rows at `positions` of a dim replaced.
  Tensor update_rows(const Tensor& positions, const Tensor& rows, DimIndex dim = 0,
                     Where at = Where::current()) const;
  /// Stable sort. NaN is larger than every number.
  Ranked sort(DimIndex dim = -1, Flag descending = false, Where at = Where::current()) const;
  Tensor argsort(DimIndex dim = -1, Flag descending = false, Where at = Where::current()) const;
  Ranked top_k(const Dim& k, DimIndex dim = -1, Flag largest = true, Where at = Where::current()) const;
  Tensor softmax(DimIndex dim, Where at = Where::current()) const;
  Tensor log_softmax(DimIndex dim, Where at = Where::current()) const;
  Tensor masked_fill(const Tensor& mask, const Number& value, Where at = Where::current()) const;
  Tensor matmul(const Tensor& other, Where at = Where::current()) const;
  Tensor pow(double exponent, Where at = Where::current()) const;
  Tensor pow(const Tensor& exponent, Where at = Where::current()) const;
  Tensor detach(Where at = Where::current()) const;  ///< stop_gradient

  /// Returns a dim counted from the front. One that is out of range, or of an empty tensor, is returned unchanged;
  /// the op rejects it.
  friend std::int64_t from_front(const Tensor& a, DimIndex dim);

 private:
  [[noreturn]] static void throw_empty(const Where& at);

  std::shared_ptr<ir::GraphBuilder> graph_;  ///< builder of the Graph that `value_` refers to; null without a Graph
  std::optional<ir::Value> value_;
};

/// A tensor with the caller's line: operators cannot have default arguments, but conversions can.
struct Operand {
  Operand(const Tensor& t, Where w = Where::current()) : tensor(t), at(w) {}  // NOLINT(google-explicit-constructor)
  Operand(const nn::Parameter& parameter, Where w = Where::current())         // NOLINT(google-explicit-constructor)
      : own(parameter, w), tensor(own), at(w) {}
  Operand(const Operand&) = delete;  ///< `tensor` may refer to `own`
  Operand& operator=(const Operand&) = delete;

  const Tensor own = {};  ///< the tensor of a parameter
  const Tensor& tensor;
  Where at;
};

/// A number with the caller's line.
struct NumberOperand {
  template <class T>
    requires(std::is_arithmetic_v<T>)
  NumberOperand(T value, Where w = Where::current()) : number(value), at(w) {}  // NOLINT(google-explicit-constructor)
  Number number;
  Where at;
};

/// Operators broadcast by NumPy's rule and require equal dtypes; a number takes the tensor's dtype.
Tensor operator+(const Operand& a, const Operand& b);
Tensor operator+(const Operand& a, const Number& b);
Tensor operator+(const Number& a, const Operand& b);
Tensor operator-(const Operand& a, const Operand& b);
Tensor operator-(const Operand& a, const Number& b);
Tensor operator-(const Number& a, const Operand& b);
Tensor operator*(const Operand& a, const Operand& b);
Tensor operator*(const Operand& a, const Number& b);
Tensor operator*(const Number& a, const Operand& b);
Tensor operator/(const Operand& a, const Operand& b);
Tensor operator/(const Operand& a, const Number& b);
Tensor operator/(const Number& a, const Operand& b);
Tensor operator%(const Operand& a, const Operand& b);  ///< integers
Tensor operator%(const Operand& a, const Number& b);
Tensor& operator+=(Tensor& a, const Operand& b);  ///< a = a + b
Tensor& operator-=(Tensor& a, const Operand& b);
Tensor& operator*=(Tensor& a, const Operand& b);
Tensor& operator/=(Tensor& a, const Operand& b);
Tensor& operator+=(Tensor& a, const NumberOperand& b);
Tensor& operator-=(Tensor& a, const NumberOperand& b);
Tensor& operator*=(Tensor& a, const NumberOperand& b);
Tensor& operator/=(Tensor& a, const NumberOperand& b);
Tensor operator-(const Operand& a);
Tensor operator==(const Operand& a, const Operand& b);  ///< comparisons give bool tensors
Tensor operator==(const Operand& a, const Number& b);
Tensor operator!=(const Operand& a, const Operand& b);
Tensor operator!=(const Operand& a, const Number& b);
Tensor operator<(const Operand& a, const Operand& b);
Tensor operator<(const Operand& a, const Number& b);
Tensor operator<=(const Operand& a, const Operand& b);
Tensor operator<=(const Operand& a, const Number& b);
Tensor operator>(const Operand& a, const Operand& b);
Tensor operator>(const Operand& a, const Number& b);
Tensor operator>=(const Operand& a, const Operand& b);
Tensor operator>=(const Operand& a, const Number& b);
Tensor operator==(const Number& a, const Operand& b);
Tensor operator!=(const Number& a, const Operand& b);
Tensor operator<(const Number& a, const Operand& b);
Tensor operator<=(const Number& a, const Operand& b);
Tensor operator>(const Number& a, const Operand& b);
Tensor operator>=(const Number& a, const Operand& b);
Tensor operator&(const Operand& a, const Operand& b);  ///< bool: and, without a short circuit; integers: bit by bit
Tensor operator&(const Operand& a, const Number& b);
Tensor operator|(const Operand& a, const Operand& b);
Tensor operator|(const Operand& a, const Number& b);
Tensor operator^(const Operand& a, const Operand& b);  ///< bool: whether they differ
Tensor operator^(const Operand& a, const Number& b);
Tensor operator~(const Operand& a);                     ///< bool: not
Tensor operator<<(const Operand& a, const Operand& b);  ///< integers
Tensor operator<<(const Operand& a, const Number& b);
Tensor operator>>(const Operand& a, const Operand& b);  ///< integers; negative numbers stay negative
Tensor operator>>(const Operand& a, const Number& b);
Tensor& operator&=(Tensor& a, const Operand& b);
Tensor& operator|=(Tensor& a, const Operand& b);
Tensor& operator^=(Tensor& a, const Operand& b);
Tensor& operator&=(Tensor& a, const NumberOperand& b);
Tensor& operator|=(Tensor& a, const NumberOperand& b);
Tensor& operator^=(Tensor& a, const NumberOperand& b);

namespace detail {

/// Returns the line of a call: that of the enclosing CallSite if there is one, else `at`.
Location line_of(const ir::GraphBuilder& builder, const Where& at);

/// While alive, ops are built at the user's line in the current scope, or at the line of an enclosing CallSite.
class Line {
 public:
  Line(ir::GraphBuilder& builder, const Where& at);
  Line(const Tensor& t, const Where& at) : Line(t.builder(at), at) {}
  /// The same in the scope of a module: "encoder.0.self".
  Line(ir::GraphBuilder& builder, const Where& at, std::string_view scope);
  Line(const Tensor& t, const Where& at, std::string_view scope) : Line(t.builder(at), at, scope) {}

 private:
  ir::GraphBuilder::At at_;
};

}  // namespace detail

/// While alive, every op is built at the line `at`, instead of the lines of library functions. nn modules hold one,
/// so that an error in them names the line of the model that called them.
class CallSite : detail::Line {
 public:
  using detail::Line::Line;
};

}  // namespace lathe
