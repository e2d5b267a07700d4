#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ir/support/dtype.h"
#include "ir/support/numbers/scalar_op.h"

/// The loop IR: a structured tree of loops and branches over vectors in SSA form. Schedules build it with builder.h.
/// The printer, the verifier, the interpreter and the emitters read the plain data below.
namespace lathe::kernel {

/// A scalar (lanes == 1) or a vector. `lanes` is a power of two, at most 64. Vectors of boolean are masks. Indices
/// are i64. bf16, f16, i8 and u8 values can only be loaded, stored, moved and cast. Complex values do not exist: bind
/// a complex buffer as its real type with twice the elements.
struct Type {
  DType scalar = f32;
  int lanes = 1;
  bool operator==(const Type&) const = default;
};

std::string to_string(Type type);  ///< "f32", "f32x16"

using ValueId = int;
using BufferId = int;
using VarId = int;
inline constexpr int none = -1;

/// The memory of a buffer. The caller binds parameters. The others are fixed-size scratch, per iteration of the
/// innermost enclosing loop mapped to parallel or block (shared), or per thread (stack, register_).
enum class Space : std::uint8_t { parameter, register_, shared, stack };
enum class Access : std::uint8_t { read, write, read_write };

struct BufferInfo {
  std::string name;
  DType dtype = f32;
  Access access = Access::read;
  Space space = Space::parameter;
  std::int64_t count = 0;  ///< elements of an allocation; unused for a parameter
  bool noalias = true;     ///< no other parameter aliases this memory
  /// The parameter may start at any element. GPU code assumes multiples of 16 bytes otherwise; CPU code assumes
  /// nothing beyond the alignments of accesses.
  bool unaligned = false;
};

/// The operation that computes a value. Constants, dims and loop indices belong to no block; every other value is
/// computed at its Compute statement.
enum class Opcode : std::uint8_t {
  constant,    // integer (not of a float) or real (floats), in every lane
  dim,         // run-time argument number `integer`
  loop_index,  // index of the loop, or of the intrinsic region, that refers to it
  scalar,      // scalar_op of args, lane by lane; for cast, `type` is the target
  fma,         // args[0] * args[1] + args[2], rounded once
  broadcast,   // scalar args[0] in every lane
  ramp,        // args[0] + lane * args[1]
  reduce,      // scalar_op over the lanes of args[0]: the upper half combined with the lower half, until one is left
  extract,     // lane `integer` of args[0]
  shuffle,     // lane i is lane lanes[i] of args[0] followed by args[1]
  load,        // buffer[args[0] + lane]
  load_strided,  // buffer[args[0] + lane * args[1]]
  gather,        // buffer[args[0].lane]
  get,           // current value of variable `integer`
  intrinsic,     // operation given by `machine`, which may have no value
};

inline constexpr int warp_threads = 32, warpgroup_threads = 128;

/// The type of an instruction without a value.
inline constexpr Type no_value{f32, 0};

struct IntrinsicRecord;

/// A buffer that an intrinsic accesses, and the kind of access.
struct IntrinsicBuffer {
  BufferId id = none;
  Access access = Access::read;
};

/// A target-specific operation of one or a few hardware instructions, such as a tile matmul, an asynchronous copy or
/// an exchange between threads. Its record (intrinsics/record.h) defines its semantics. Each operation has a file
/// under intrinsics/ that documents its operands; its value operands are the instruction's args.
struct IntrinsicOp {
  const IntrinsicRecord* record = nullptr;
  std::vector<IntrinsicBuffer> buffers{};
  std::vector<VarId> vars{};
  std::vector<std::int64_t> attributes{};
  int map = none;  ///< index into the kernel's tensor maps
};

struct Instruction {
  Opcode op = Opcode::constant;
  Type type{};
  ScalarOp scalar_op = ScalarOp::add;
  std::vector<ValueId> args{};
  std::int64_t integer = 0;
  double real = 0;  ///< exactly representable in `type.scalar`
  std::vector<int> lanes{};
  BufferId buffer = none;
  ValueId mask = none;  ///< loads: lanes whose mask is false give 0 and do not access memory
  int alignment = 0;    ///< contiguous accesses: known alignment of the address in bytes; 0: that of the element
  std::shared_ptr<const IntrinsicOp> machine{};
};

/// How the iterations of a loop are run. Iterations are independent except in serial and unroll loops. `unroll`
/// requires constant bounds. CPU emitters run `vector` as serial (vectors are explicit). They also run block and
/// thread loops without a barrier as serial loops.
enum class LoopKind : std::uint8_t {
  serial,
  parallel,
  vector,
  unroll,
  block_x,
  block_y,
  block_z,
  thread_x,
  thread_y,
  thread_z,
};

struct Statement;  // no default member initializer = {} before it is complete: clang rejects it
using Block = std::vector<Statement>;

/// Executes an instruction.
struct Compute {
  ValueId value = none;
};

enum class StoreKind : std::uint8_t { contiguous, strided, scatter };

/// buffer[index + lane] / buffer[index + lane * stride] / buffer[index.lane] = value. If several lanes write the same
/// element, the last lane wins. Lanes whose mask is false write nothing. With `streams` it is a non-temporal store of
/// whole contiguous vectors that are not read again soon; it bypasses the caches if the hardware can.
struct Store {
  StoreKind kind = StoreKind::contiguous;
  bool streams = false;
  BufferId buffer = none;
  ValueId index = none;
  ValueId stride = none;
  ValueId value = none;
  ValueId mask = none;
  int alignment = 0;
};

/// Prefetches the cache line of buffer[index]; the buffer is a parameter. No value depends on it. The index may be
/// out of bounds.
struct Prefetch {
  BufferId buffer = none;
  ValueId index = none;
};

/// A tensor from which TMA copies boxes. It is in a read-only parameter and has 2 to 5 dims, innermost first; the
/// innermost stride is 1. Element (c0, c1, ...) is from[offset + c0 + c1 * strides[0] + ...]; elements beyond the
/// sizes are zero. Offset, sizes and strides are constants or dims; offset and strides are multiples of 16 bytes. A
/// box has 64 elements along the innermost dim and up to 256 along each other dim. Its number of rows of 64 elements
/// is a multiple of 8.
struct TensorMap {
  BufferId from = none;
  ValueId offset = none;
  std::vector<ValueId> sizes, strides;
  std::vector<int> box;

  int box_rows() const;  ///< rows of 64 elements in a box
};
inline constexpr std::size_t most_map_dims = 5;
inline constexpr int most_box_size = 256;  ///< along one dim

/// Assigns a register variable; the first assignment declares it.
struct SetVar {
  VarId var = none;
  ValueId value = none;
  bool declares = false;
};

/// Scratch memory, undefined until written. Its lifetime ends with the enclosing block.
struct Alloc {
  BufferId buffer = none;
};

/// Synchronizes the threads of the block (in an intrinsic region: the threads that run the surrounding statements)
/// and makes their writes to shared memory visible.
struct Barrier {};

struct IntrinsicRegionRecord;

/// Statements whose bodies are divided among the threads of a block. All threads enter it together. Its record
/// (intrinsics/region.h) defines its semantics and which threads run which body. Each region has a file under
/// intrinsics/ that documents its attributes.
struct IntrinsicRegion {
  const IntrinsicRegionRecord* record = nullptr;
  std::vector<std::int64_t> attributes{};
  ValueId index = none;  ///< the index passed to its bodies, if any
  std::vector<Block> bodies;
};

/// If `condition` is false, sets the status word to `code` unless it is already nonzero; the kernel keeps running.
struct Check {
  ValueId condition = none;
  std::int64_t code = 0;
};

/// for (index = lo; index < hi; index += step), step > 0.
struct Loop {
  LoopKind kind = LoopKind::serial;
  ValueId index = none, lo = none, hi = none, step = none;
  Block body;
};

struct Branch {
  ValueId condition = none;
  Block then_block, else_block;
};

struct Statement {
  std::variant<Compute, Store, Prefetch, SetVar, Alloc, Barrier, Check, Loop, Branch, IntrinsicRegion> node;
};

struct VarInfo {
  Type type;
};

struct Kernel {
  std::string name;
  std::vector<BufferInfo> buffers;  ///< parameters first, in the order of binding, then allocations
  std::vector<std::string> dims;    ///< run-time i64 arguments, in the order of binding
  std::vector<TensorMap> maps{};    ///< TMA descriptors, created from the other arguments at launch
  std::vector<Instruction> values;
  std::vector<VarInfo> vars;
  /// The kernels that the phases of this kernel run, block by block (phases.h).
  std::vector<std::shared_ptr<const Kernel>> phase_kernels{};
  Block body{};
  std::vector<std::string> notes;  ///< the ops it was generated from, such as "%5 softmax mha.cpp:14"

  int parameter_count() const;
  /// Returns whether all threads of a block, a warp or a warpgroup take part in the statement: a barrier, a machine
  /// region, or an intrinsic executed by several threads together. Does not look inside loops and branches.
  bool is_collective(const Statement& statement) const;
  /// Returns the top-level parallel loop, or null.
  const Loop* parallel_loop() const;
};

std::string_view name(Access access);
std::string_view name(Space space);
std::string_view name(LoopKind kind);
std::string_view name(Opcode op);

/// Overload set for std::visit over Statement::node.
template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace lathe::kernel

/// Formats as "f32x16". The text is built lazily: the builder and the verifier name types in messages that are
/// formatted only on failure.
template <>
struct fmt::formatter<lathe::kernel::Type> {
  template <class Context>
  constexpr auto parse(Context& context) {
    return context.begin();
  }
  template <class Context>
  auto format(lathe::kernel::Type type, Context& context) const {
    const std::string text = to_string(type);
    return std::copy(text.begin(), text.end(), context.out());
  }
};
