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

/// Building kernels. A row-wise scaling, y[r, c] = x[r, c] * 2 with tails masked:
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
/// How a kernel is run. The caller binds one pointer per buffer parameter and one i64 per dim, in the order in which
/// buffer() and dim() first named them. The iterations of the parallel loop are cut into ranges, each run by one
/// call, on any thread, in any order: statements before the parallel loop are set-up, recomputed by every call (no
/// stores to parameters there), and nothing may follow it. A kernel without a parallel loop runs as one iteration.
/// Results never depend on how the ranges were cut, as long as the iterations write to different elements. Kernels
/// allocate only small scratch (alloc); big workspaces are buffer parameters.
///
/// Meaning of the arithmetic, equal in the interpreter and in every emitter:
///   integers wrap; x / 0 = 0 and x rem 0 = 0; a shift by the width or more gives 0; float -> integer truncates,
///   saturates, NaN -> 0; floats follow IEEE in the order written, nothing is contracted or reassociated, so write
///   fma where it is wanted; min and max give NaN if either is NaN, and the second operand where both are equal; sign
///   keeps NaN and zeros; f32 -> bf16 and f16 round to nearest even. exp, log, tanh, erf, sin, cos, pow are accurate
///   to a few units in the last place (docs/kernel-ir.md has the table).
/// The builder folds constants and simplifies exactly (never x + 0.0 or x * 0.0 of floats, which can change a
/// result).
///
/// Wrong types are defects of a schedule: every function throws InternalError on them.
namespace lathe::kernel {

class Builder;

/// A handle on an SSA value of one builder; empty by default (as a mask: no mask). Values can be used inside the
/// block in which they are computed, and in blocks nested in it.
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
/// variables: any number of them stays in registers as far as the machine has registers.
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

  /// Records where the kernel came from, such as "%5 softmax mha.cpp:14". Notes do not influence the code or its key.
  void note(std::string text);
  /// Verifies and gives the kernel away; the builder is empty afterwards.
  Kernel finish();

  // Parameters. `noalias = false` says that another parameter may be bound to the same memory: both must say so, and
  // each iteration must read an element before it writes it.
  Buffer buffer(std::string_view name, DType dtype, Access access, bool noalias = true);
  Value dim(std::string_view name);  ///< i64; the same name gives the same value

  // Constants. The double is rounded to `dtype` (an integer dtype wants a whole number).
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
  /// If the scalar condition is false, the status word becomes `code` (> 0) unless a failure is recorded already.
  /// The kernel goes on, so guard the accesses that depend on it.
  void check(Value condition, std::int64_t code);

  // Register variables.
  Var var(Type type, Value init);
  Var var(Value init) { return var(init.type, init); }
  Value get(Var var);
  void set(Var var, Value value);  ///< a scalar is broadcast

  /// Scratch of `count` elements, aligned to 64 bytes, undefined until written. Stack scratch may hold up to 256 KiB
  /// in all; it is the same memory in every iteration.
  Buffer alloc(DType dtype, std::int64_t count, Space space = Space::stack, std::string_view name = "tmp");

  // Memory. Indices count elements of the buffer. A mask is a boolean vector (or scalar) of as many lanes: where it
  // is false, loads give 0 and stores write nothing, and the address may be out of bounds.
  Value load(Buffer buffer, Bound index, int lanes = 1, Value mask = {}, int alignment = 0);
  Value load_strided(Buffer buffer, Bound base, Bound stride, int lanes, Value mask = {});
  Value gather(Buffer buffer, Value indices, Value mask = {});  ///< indices: i64 vector
  void store(Buffer buffer, Bound index, Value value, Value mask = {}, int alignment = 0);
  /// A non-temporal store, for what nobody reads soon: past the caches, where the machine can.
  void stream(Buffer buffer, Bound index, Value value);
  void store_strided(Buffer buffer, Bound base, Bound stride, Value value, Value mask = {});
  void scatter(Buffer buffer, Value indices, Value value, Value mask = {});
  void prefetch(Buffer buffer, Bound index);  ///< of a parameter; the index may be out of bounds

  /// A matrix in memory: where element (0, 0) is, and how far it is from one row to the next.
  struct Rows {
    Buffer buffer;
    Bound first, stride;
  };

  /// Carries out a machine operation (machine/); its value, or an empty one.
  Value machine(Instruction operation);
  /// An index or a bound as a value.
  Value bound(Bound b);
  /// A tensor of `dims`, the innermost first, that begins at `offset` in a parameter; its number. See TensorMap. Of a
  /// dim: how many elements it has, from one to the next, and how many a box has. Offset, sizes and strides are
  /// constants or dims.
  struct Boxes {
    struct Dim {
      Bound size, stride;
      int box = 1;
    };
    Bound offset = 0;
    std::vector<Dim> dims;
  };
  int tensor_map(Buffer from, const Boxes& boxes);
  /// A machine region (ir/kernel/machine/region.h). Its bodies are given its index, or an empty value where it has
  /// none.
  void region(const MachineRegionRecord& record, std::vector<std::int64_t> attributes,
              const std::vector<Body>& bodies);

  // Arithmetic. A scalar operand is broadcast where another operand is a vector.
  Value apply(ScalarOp op, std::vector<Value> args);  ///< any ScalarOp but cast
  Value cast(Value value, DType dtype);
  Value fma(Value a, Value b, Value c);  ///< f32 or f64
  Value select(Value condition, Value if_true, Value if_false) {
    return apply(ScalarOp::select, {condition, if_true, if_false});
  }

  // Vectors.
  Value broadcast(Value scalar, int lanes);         ///< a vector of `lanes` lanes passes through
  Value ramp(Value base, int lanes);                ///< i64 or i32: base, base + 1, ...
  Value ramp(Value base, int lanes, Value stride);  ///< base + lane * stride
  /// add, mul, min, max, logical_and or logical_or over all lanes, in this order: lanes [0, n/2) combined with lanes
  /// [n/2, n), the same on the result, until one lane is left.
  Value reduce(ScalarOp op, Value vector);
  Value extract(Value vector, int lane);
  /// Lane i of the result is lane lanes[i] of `a` followed by `b` (equal types). Concatenates, splits, interleaves.
  Value shuffle(Value a, Value b, std::vector<int> lanes);
  Value concat(Value low, Value high);              ///< [low, high]
  Value slice(Value vector, int first, int count);  ///< lanes [first, first + count)
  /// Lane l is l < remaining: the mask of a tail. `remaining` may be negative or larger than `lanes`.
  Value tail_mask(Value remaining, int lanes);

  // Integer helpers.
  Value ceil_div(Value a, Bound b);  ///< for a >= 0, b > 0
  Value round_up(Value a, Bound b);  ///< the least multiple of b that is >= a

  /// The constant in every lane, if `value` is one.
  bool is_constant(Value value) const;
  bool is_constant(Value value, double equal_to) const;
  std::optional<std::int64_t> constant_value(Value value) const;  ///< of integers

  /// A power of two that the i64 value is known to be a multiple of.
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

// Operators and functions on values, through the values' builder. Numbers become constants of the other operand's
// type.
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
Value logical_not(Value a);  ///< no operator!: `!mask` asks whether a handle is empty
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
