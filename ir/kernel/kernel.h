#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ir/support/dtype.h"
#include "ir/support/scalar_op.h"

/// The loop IR: one structured tree of loops and branches over vectors in SSA form. Schedules build it with
/// builder.h; the printer, the verifier, the interpreter and the emitters read the plain data below.
namespace lathe::kernel {

/// A scalar (lanes == 1) or a vector. `lanes` is a power of two, at most 64. Vectors of boolean are masks. i64 is
/// also the type of indices. bf16, f16, i8 and u8 values can only be loaded, stored, moved and cast. There are
/// no complex values: bind a complex buffer as one of its real type with twice the elements.
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

/// Where a buffer lives. A parameter is bound by the caller; the others are the fixed-size scratch of one iteration
/// of the innermost enclosing loop mapped to parallel / block (shared) or of one thread (stack, register_).
enum class Space : std::uint8_t { parameter, register_, shared, stack };
enum class Access : std::uint8_t { read, write, read_write };

struct BufferInfo {
  std::string name;
  DType dtype = f32;
  Access access = Access::read;
  Space space = Space::parameter;
  std::int64_t count = 0;  ///< elements of an allocation; unused for a parameter
  bool noalias = true;     ///< no other parameter touches the same memory
};

/// What computes a value. Constants, dims and loop indices stand in no block; every other value is computed where
/// its Compute statement stands.
enum class Opcode : std::uint8_t {
  constant,    // integer (not of a float) or real (floats), in every lane
  dim,         // run-time argument number `integer`
  loop_index,  // the index of the loop, or of the machine region, that names it
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
  get,           // the present value of variable `integer`
  machine,       // what `machine` says, which may give no value
};

inline constexpr int warp_threads = 32, warpgroup_threads = 128;

/// The type of an instruction that gives no value.
inline constexpr Type no_value{f32, 0};

struct MachineRecord;

/// A buffer that a machine operation accesses, and how.
struct MachineBuffer {
  BufferId id = none;
  Access access = Access::read;
};

/// What some machine does in one instruction, or a few: products of tiles, copies in the background, exchanges
/// between threads. Its record (machine/record.h) knows what it means; each operation has a file under machine/ that
/// says what its operands are, and the values among them are the instruction's args.
struct MachineOp {
  const MachineRecord* record = nullptr;
  std::vector<MachineBuffer> buffers{};
  std::vector<VarId> vars{};
  std::vector<std::int64_t> attributes{};
  int map = none;  ///< of the kernel's tensor maps
};

struct Instruction {
  Opcode op = Opcode::constant;
  Type type;
  ScalarOp scalar_op = ScalarOp::add;
  std::vector<ValueId> args{};
  std::int64_t integer = 0;
  double real = 0;  ///< exactly representable in `type.scalar`
  std::vector<int> lanes{};
  BufferId buffer = none;
  ValueId mask = none;  ///< loads: lanes where it is false give 0 and touch no memory
  int alignment = 0;    ///< contiguous accesses: bytes the address is known to be a multiple of; 0: the element's
  std::shared_ptr<const MachineOp> machine{};
};

/// How the iterations of a loop are run. Iterations of all but serial and unroll loops are independent. `unroll`
/// wants constant bounds. Emitters for a CPU run `vector` as serial (vectors are explicit), and block and thread
/// loops as serial loops when no barrier stands in them.
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

struct Statement;  // no member of this type starts as {} before it is complete: clang wants it so
using Block = std::vector<Statement>;

/// Carries out an instruction.
struct Compute {
  ValueId value = none;
};

enum class StoreKind : std::uint8_t { contiguous, strided, scatter };

/// buffer[index + lane] / buffer[index + lane * stride] / buffer[index.lane] = value; lanes that write the same
/// element leave the last lane's value. Lanes where the mask is false write nothing. What `streams` is a non-temporal
/// store, past the caches where the machine can: whole contiguous vectors, which nobody reads soon.
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

/// Prefetches the cache line that holds buffer[index], a parameter's; no value depends on it. The index may lie
/// outside.
struct Prefetch {
  BufferId buffer = none;
  ValueId index = none;
};

/// What TMA copies boxes of: a tensor in a parameter that is only read, of 2 to 5 dims, the innermost first, whose
/// stride is 1. Element (c0, c1, ...) is from[offset + c0 + c1 * strides[0] + ...]; beyond the sizes there are zeros.
/// Offset, sizes and strides are constants or dims; offset and strides are multiples of 16 bytes. A box has 64
/// elements along the innermost dim, and up to 256 along the others, multiples of 8 rows of 64 in all.
struct TensorMap {
  BufferId from = none;
  ValueId offset = none;
  std::vector<ValueId> sizes, strides;
  std::vector<int> box;

  int box_rows() const;  ///< rows of 64 elements in a box
};
inline constexpr std::size_t most_map_dims = 5;
inline constexpr int most_box_size = 256;  ///< along one dim

/// Declares (the first time) and assigns a register variable.
struct SetVar {
  VarId var = none;
  ValueId value = none;
  bool declares = false;
};

/// Scratch memory, undefined until written, living until the end of the enclosing block.
struct Alloc {
  BufferId buffer = none;
};

/// Every thread of the block (in a machine region: every one that runs the statements around) waits for the others
/// and sees their writes to shared memory.
struct Barrier {};

struct MachineRegionRecord;

/// Statements that threads of a block carry out in parts, as some machine lets them: all threads come to it together.
/// Its record (machine/region.h) knows what it means, and which threads run which body; each region has a file under
/// machine/ that says what its attributes are.
struct MachineRegion {
  const MachineRegionRecord* record = nullptr;
  std::vector<std::int64_t> attributes{};
  ValueId index = none;  ///< what its bodies count by, if they do
  std::vector<Block> bodies;
};

/// If `condition` is false, the status word becomes `code` unless it is nonzero already; the kernel goes on.
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
  std::variant<Compute, Store, Prefetch, SetVar, Alloc, Barrier, Check, Loop, Branch, MachineRegion> node;
};

struct VarInfo {
  Type type;
};

struct Kernel {
  std::string name;
  std::vector<BufferInfo> buffers;  ///< parameters first, in the order of binding, then allocations
  std::vector<std::string> dims;    ///< run-time i64 arguments, in the order of binding
  std::vector<TensorMap> maps{};    ///< that TMA is told, made of the others where the kernel is launched
  std::vector<Instruction> values;
  std::vector<VarInfo> vars;
  Block body{};
  std::vector<std::string> notes;  ///< the ops it came from, such as "%5 softmax mha.cpp:14"

  int parameter_count() const;
  /// Whether all threads of a block, of a warp or of a warpgroup take part in the statement: a barrier, a machine
  /// region, or a machine operation that threads carry out together. Loops and branches are not looked into.
  bool is_collective(const Statement& statement) const;
  /// The top-level parallel loop, or null.
  const Loop* parallel_loop() const;
};

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

/// "f32x16". Written only where the text is wanted: the builder and the verifier name types in messages that nobody
/// reads as long as all is well.
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
