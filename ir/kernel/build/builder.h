#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "ir/kernel/build/divisors.h"
#include "ir/kernel/kernel.h"

/// Builds kernels. Example: a row-wise scaling, y[r, c] = x[r, c] * 2, with masked tails:
///
///   Builder b("scale");
///   Buffer x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
///   Value rows = b.dim("rows"), cols = b.dim("cols");
///   b.parallel_for(0, rows, 1, [&](Value r) {
///     b.for_loop(0, cols, 16, [&](Value c) {
///       Value mask = b.tail_mask(cols - c, 16);
///       b.store(y, r * cols + c, b.load(x, r * cols + c, 16, mask) * 2.0, mask);
///     });
///   });
///   Kernel k = b.finish();
///
/// Execution. The caller binds one pointer per buffer parameter and one i64 per dim, in the order in which buffer()
/// and dim() first named them. The iterations of the parallel loop are split into ranges. Each range is run by one
/// call, on any thread, in any order. Statements before the parallel loop are set-up: every call recomputes them, so
/// they must not store to parameters. Nothing may follow the parallel loop. A kernel without one runs as a single
/// iteration. Results do not depend on the split as long as the iterations write different elements. Kernels allocate
/// only small scratch (alloc); large workspaces are buffer parameters.
///
/// Arithmetic semantics, the same in the interpreter and in every emitter:
///   integers wrap; x / 0 = 0 and x rem 0 = 0; a shift by the width or more gives 0; float -> integer truncates and
///   saturates, NaN -> 0; floats follow IEEE in the order written, without contraction or reassociation, so use fma
///   explicitly; min and max return NaN if either operand is NaN, and the second operand if both are equal; sign
///   keeps NaN and zeros; f32 -> bf16 and f16 round to nearest even. exp, log, tanh, erf, sin, cos, pow are accurate
///   to a few units in the last place (docs/kernel-ir.md has the table).
/// The builder folds constants and applies exact simplifications only (never x + 0.0 or x * 0.0 of floats, which can
/// change a result).
///
/// A type error is a bug in a schedule: every function throws InternalError on it.
namespace lathe::kernel {

class Builder;

/// A handle to an SSA value of one builder; empty by default (an empty mask means no mask). A value can be used in
/// the block that computes it and in blocks nested in that block.
struct Value {
  Builder* builder = nullptr;
  ValueId id = none;
  Type type;
  explicit operator bool() const { return id != none; }
};

struct Buffer {
  BufferId id = none;
  DType dtype = f32;
};

/// A mutable register variable, visible in the block that declares it and in blocks nested in it. Accumulators are
/// variables; they stay in registers as long as the hardware has enough.
struct Var {
  VarId id = none;
  Type type;
};

template <class T>
concept Number = std::is_arithmetic_v<T>;

class Builder {
 public:
  explicit Builder(std::string name);
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  /// Records the origin of the kernel, such as "%5 softmax mha.cpp:14". Notes affect neither the code nor its key.
  void note(std::string text);
  /// Verifies the kernel and moves it out; the builder is empty afterwards.
  Kernel finish();

  // Parameters. `noalias = false` means that another parameter may be bound to the same memory. Both parameters must
  // be declared so, and each iteration must read an element before it writes it.
  Buffer buffer(std::string_view name, DType dtype, Access access, bool noalias = true);
  Value dim(std::string_view name);  ///< i64; the same name gives the same value

  // Constants. The double is rounded to `dtype` (an integer dtype requires an integral value).
  Value constant(DType dtype, double value, int lanes = 1);
  Value constant_int(DType dtype, std::int64_t value, int lanes = 1);
  Value index(std::int64_t value) { return constant_int(i64, value); }

  // Control. lo, hi, step and indices are i64 scalars. Bodies run zero times when lo >= hi; step > 0.
  struct Bound {
    Value value;
    std::int64_t number = 0;
    template <Number T>
    Bound(T n) : number(static_cast<std::int64_t>(n)) {}  // NOLINT: implicit, so that 0 and Value mix
    Bound(Value v) : value(v) {}                          // NOLINT
  };
  using Body = std::function<void(Value)>;
  void parallel_for(Bound lo, Bound hi, Bound step, const Body& body);
  void for_loop(Bound lo, Bound hi, Bound step, const Body& body, LoopKind kind = LoopKind::serial);
  void if_(Value condition, const std::function<void()>& then, const std::function<void()>& otherwise = {});
  void barrier();
  /// Sets the status word to `code` (> 0) if the scalar condition is false and no failure is recorded yet. The kernel
  /// keeps running, so guard the accesses that depend on the condition.
  void check(Value condition, std::int64_t code);

  // Register variables.
  Var var(Type type, Value init);
  Var var(Value init) { return var(init.type, init); }
  Value get(Var var);
  void set(Var var, Value value);  ///< a scalar is broadcast

  /// Allocates scratch of `count` elements, aligned to 64 bytes, undefined until written. A kernel's stack scratch is
  /// limited to 256 KiB in total; every iteration reuses the same memory.
  Buffer alloc(DType dtype, std::int64_t count, Space space = Space::stack, std::string_view name = "tmp");

  // Memory. Indices count elements of the buffer. A mask is a boolean scalar, or a vector with one lane per element.
  // Where it is false, loads give 0, stores write nothing, and the address may be out of bounds.
  Value load(Buffer buffer, Bound index, int lanes = 1, Value mask = {}, int alignment = 0);
  Value load_strided(Buffer buffer, Bound base, Bound stride, int lanes, Value mask = {});
  Value gather(Buffer buffer, Value indices, Value mask = {});  ///< indices: i64 vector
  void store(Buffer buffer, Bound index, Value value, Value mask = {}, int alignment = 0);
  /// Emits a non-temporal store for data that is not read again soon; it bypasses the caches if the hardware can.
  void stream(Buffer buffer, Bound index, Value value);
  void store_strided(Buffer buffer, Bound base, Bound stride, Value value, Value mask = {});
  void scatter(Buffer buffer, Value indices, Value value, Value mask = {});
  void prefetch(Buffer buffer, Bound index);  ///< parameters only; the index may be out of bounds

  /// A matrix in memory: the index of element (0, 0), and the row stride in elements.
  struct Rows {
    Buffer buffer;
    Bound first, stride;
  };

  /// Emits an intrinsic (machine/). Returns its value, or an empty one if it has none.
  Value machine(Instruction operation);
  /// Converts an index or a bound to a value.
  Value bound(Bound b);
  /// Describes a tensor whose `dims`, innermost first, begin at `offset` in a parameter; see TensorMap. Each dim has
  /// a size, a stride and the number of elements per box. Offset, sizes and strides are constants or dims.
  struct Boxes {
    struct Dim {
      Bound size, stride;
      int box = 1;
    };
    Bound offset = 0;
    std::vector<Dim> dims;
  };
  int tensor_map(Buffer from, const Boxes& boxes);
  /// Emits an intrinsic region (ir/kernel/intrinsics/region.h). Passes the region's index to its bodies, or an empty
  /// value if it has no index.
  void region(const IntrinsicRegionRecord& record, std::vector<std::int64_t> attributes,
              const std::vector<Body>& bodies);

  // Arithmetic. A scalar operand is broadcast if another operand is a vector.
  Value apply(ScalarOp op, std::vector<Value> args);  ///< any ScalarOp except cast
  Value cast(Value value, DType dtype);
  Value fma(Value a, Value b, Value c);  ///< f32 or f64
  Value select(Value condition, Value if_true, Value if_false) {
    return apply(ScalarOp::select, {condition, if_true, if_false});
  }

  // Vectors.
  Value broadcast(Value scalar, int lanes);         ///< a vector of `lanes` lanes is returned unchanged
  Value ramp(Value base, int lanes);                ///< i64 or i32: base, base + 1, ...
  Value ramp(Value base, int lanes, Value stride);  ///< base + lane * stride
  /// Reduces the lanes with add, mul, min, max, logical_and or logical_or. Combines lanes [0, n/2) with lanes [n/2,
  /// n), then repeats on the result until one lane is left.
  Value reduce(ScalarOp op, Value vector);
  Value extract(Value vector, int lane);
  /// Returns a vector whose lane i is lane lanes[i] of `a` followed by `b` (equal types). Covers concatenation,
  /// splitting and interleaving.
  Value shuffle(Value a, Value b, std::vector<int> lanes);
  Value concat(Value low, Value high);              ///< [low, high]
  Value slice(Value vector, int first, int count);  ///< lanes [first, first + count)
  /// Returns the mask of a tail: lane l is l < remaining. `remaining` may be negative or larger than `lanes`.
  Value tail_mask(Value remaining, int lanes);

  // Integer helpers.
  Value ceil_div(Value a, Bound b);  ///< for a >= 0, b > 0
  Value round_up(Value a, Bound b);  ///< the least multiple of b that is >= a

  /// Returns whether every lane of `value` is the same constant.
  bool is_constant(Value value) const;
  bool is_constant(Value value, double equal_to) const;
  std::optional<std::int64_t> constant_value(Value value) const;  ///< integers only

  /// Returns a power of two that is known to divide the i64 value.
  std::int64_t divisor(Value value) const { return divisors_.of(value.id); }

 private:
  friend struct Simplifier;
  Value handle(ValueId id);
  Value append(Instruction instruction);
  Value add_value(Instruction instruction);
  Value checked_mask(Value mask, int lanes, bool& never);
  void emit(Statement statement);
  void nested(Block& into, const std::function<void()>& body);
  const Instruction& at(Value value) const;

  Kernel kernel_;
  std::vector<Block*> blocks_;
  std::map<std::tuple<DType, int, std::int64_t, std::uint64_t>, ValueId> constants_;
  std::vector<ValueId> dims_;
  Divisors divisors_;
};

// Operators and functions on values; they emit through the values' builder. A number becomes a constant of the other
// operand's type.
Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);
Value operator%(Value a, Value b);
Value operator<(Value a, Value b);
Value operator<=(Value a, Value b);
Value operator>(Value a, Value b);
Value operator>=(Value a, Value b);
Value operator&&(Value a, Value b);  ///< both sides are evaluated
Value operator||(Value a, Value b);
Value logical_not(Value a);  ///< not operator!: `!mask` tests for an empty handle
Value operator-(Value a);
Value equal(Value a, Value b);
Value not_equal(Value a, Value b);
Value min(Value a, Value b);
Value max(Value a, Value b);
Value number_like(Value like, double value);
Value number_like(Value like, std::int64_t value);

template <Number T>
Value like(Value other, T number) {
  if constexpr (std::is_floating_point_v<T>)
    return number_like(other, static_cast<double>(number));
  else
    return number_like(other, static_cast<std::int64_t>(number));
}
template <Number T>
Value operator+(Value a, T b) {
  return a + like(a, b);
}
template <Number T>
Value operator-(Value a, T b) {
  return a - like(a, b);
}
template <Number T>
Value operator*(Value a, T b) {
  return a * like(a, b);
}
template <Number T>
Value operator/(Value a, T b) {
  return a / like(a, b);
}
template <Number T>
Value operator%(Value a, T b) {
  return a % like(a, b);
}
template <Number T>
Value operator<(Value a, T b) {
  return a < like(a, b);
}
template <Number T>
Value operator<=(Value a, T b) {
  return a <= like(a, b);
}
template <Number T>
Value operator>(Value a, T b) {
  return a > like(a, b);
}
template <Number T>
Value operator>=(Value a, T b) {
  return a >= like(a, b);
}
template <Number T>
Value equal(Value a, T b) {
  return equal(a, like(a, b));
}
template <Number T>
Value not_equal(Value a, T b) {
  return not_equal(a, like(a, b));
}
template <Number T>
Value min(Value a, T b) {
  return min(a, like(a, b));
}
template <Number T>
Value max(Value a, T b) {
  return max(a, like(a, b));
}
template <Number T>
Value operator+(T a, Value b) {
  return like(b, a) + b;
}
template <Number T>
Value operator-(T a, Value b) {
  return like(b, a) - b;
}
template <Number T>
Value operator*(T a, Value b) {
  return like(b, a) * b;
}
template <Number T>
Value operator/(T a, Value b) {
  return like(b, a) / b;
}

}  // namespace lathe::kernel
