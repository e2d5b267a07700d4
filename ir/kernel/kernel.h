#pragma once

#include <cstdint>
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
  constant,     // integer (not of a float) or real (floats), in every lane
  dim,          // run-time argument number `integer`
  loop_index,   // the index of the loop, or the slot of the stage, that names it
  scalar,       // scalar_op of args, lane by lane; for cast, `type` is the target
  fma,          // args[0] * args[1] + args[2], rounded once
  dot_pairs,    // args[2] + the products of two neighbouring bf16 each: see evaluate_dot_pair
  bf16_slices,  // slice `integer` of args[0] and args[1], which are f32, in turn: see evaluate_slice
  broadcast,    // scalar args[0] in every lane
  ramp,         // args[0] + lane * args[1]
  reduce,       // scalar_op over the lanes of args[0]: the upper half combined with the lower half, until one is left
  extract,      // lane `integer` of args[0]
  shuffle,      // lane i is lane lanes[i] of args[0] followed by args[1]
  load,         // buffer[args[0] + lane]
  load_strided,    // buffer[args[0] + lane * args[1]]
  gather,          // buffer[args[0].lane]
  get,             // the present value of variable `integer`
  mma,             // a warp's product of two tiles in shared memory, added to args[4]: see MatrixTile
  from_lane,       // args[0] of thread args[1] of the warp
  from_consumers,  // of a pipeline: args[0], which all consumers have alike, for the producers too
};

/// An operand of mma: a matrix of `rows` rows of 16 elements that are summed over, in shared memory. Element (row, k)
/// is buffer[first + row * line + k], or where it lies transposed buffer[first + k * line + row]; `first` and `line`
/// are args of the instruction, multiples of 8 elements, equal in all threads of a warp.
///
/// mma adds left * right^T to a tile of left.rows x right.rows sums that the 32 threads of a warp hold in f32
/// together, as mma.sync.m16n8k16 lays it out (sum_place). args: left first, left line, right first, right line,
/// sums.
struct MatrixTile {
  BufferId buffer = none;
  int rows = 0;  ///< a multiple of 16
  bool transposed = false;
};

/// Which sum of a tile of `columns` columns is number `index` in the vector of thread `lane` of the warp.
struct SumPlace {
  int row = 0, column = 0;
};
SumPlace sum_place(int columns, int lane, int index);
inline constexpr int warp_threads = 32;
inline constexpr int mma_depth = 16;
/// How the operands of Wgmma lie in shared memory: in panels of 64 lines of 64 elements (128 bytes), in each line
/// of which pieces of 16 bytes are swapped, as the 128-byte swizzle of wgmma has them. The place of an element in its
/// panel:
int panel_place(int line, int element);
inline constexpr int panel_side = 64;
inline constexpr int panel_elements = panel_side * panel_side;
inline constexpr int panel_alignment = 1024;  ///< bytes
/// Of the 64 rows of sums that the 128 threads of a warpgroup hold in f32 together, as wgmma.m64nNk16 lays them out:
/// which one is number `index` in the vector of thread `thread`, however many columns there are, up to 128. Elements
/// of a left operand that threads hold are laid out alike. Products of Wgmma are up to 64 deep.
inline constexpr int warpgroup_threads = 128, wgmma_rows = 64, wgmma_columns = 128, wgmma_depth = 64;
SumPlace wgmma_sum_position(int thread, int index);
/// How many threads, neighbours, compute it together: 1 or a warp.
int threads_together(Opcode op);
/// Whether other threads take part in it: those, or all of a pipeline.
bool is_collective(Opcode op);

struct Instruction {
  Opcode op = Opcode::constant;
  Type type;
  ScalarOp scalar_op = ScalarOp::add;
  std::vector<ValueId> args{};
  std::int64_t integer = 0;
  double real = 0;  ///< exactly representable in `type.scalar`
  std::vector<int> lanes{};
  MatrixTile left{}, right{};  ///< of mma
  BufferId buffer = none;
  ValueId mask = none;  ///< loads: lanes where it is false give 0 and touch no memory
  int alignment = 0;    ///< contiguous accesses: bytes the address is known to be a multiple of; 0: the element's
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

struct Compute {
  ValueId value = none;
};

enum class StoreKind : std::uint8_t { contiguous, strided, scatter };

/// buffer[index + lane] / buffer[index + lane * stride] / buffer[index.lane] = value; lanes that write the same
/// element leave the last lane's value. Lanes where the mask is false write nothing. What `streams` goes past the
/// caches where the machine can: whole contiguous vectors, which nobody reads soon.
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

/// Asks for the cache line that holds buffer[index], a parameter's; no value depends on it. The index may lie
/// outside.
struct Prefetch {
  BufferId buffer = none;
  ValueId index = none;
};

/// Starts a copy of 16 bytes: to[to_index + i] = from[from_index + i], and 0 at and beyond the first `count` elements
/// where one is given; of `from` only these are touched. It ends at the thread's wait for it: until then what is in
/// `to` there is undefined. `to` is shared memory, `from` a parameter that is only read; both places are multiples of
/// 16 bytes.
struct AsyncCopy {
  BufferId to = none, from = none;
  ValueId to_index = none, from_index = none, count = none;
};

/// What TMA copies boxes of: a tensor in a parameter that is only read, of 2 to 5 dims, the innermost first, whose
/// stride is 1. Element (c0, c1, ...) is from[offset + c0 + c1 * strides[0] + ...]; beyond the sizes there are zeros.
/// Offset, sizes and strides are constants or dims; offset and strides are multiples of 16 bytes. A box has 64
/// elements along the innermost dim, and up to 256 along the others, multiples of 8 lines in all.
struct TensorMap {
  BufferId from = none;
  ValueId offset = none;
  std::vector<ValueId> sizes, strides;
  std::vector<int> box;

  int lines() const;  ///< of a box
};
inline constexpr std::size_t most_map_dims = 5;
inline constexpr int most_box_lines = 256;

/// Starts a copy of the box of a map that begins at the place `at`, to the lines of panels in shared memory (see
/// panel_place) from to_index on, a multiple of 1024 bytes. It stands in the producer of a stage; of the threads that
/// fill the first one alone makes it, and the stage is used when it has arrived.
struct CopyBox {
  BufferId to = none;
  ValueId to_index = none;
  int map = none;
  std::vector<ValueId> at;
};

/// The copies that the thread has started since its last commit become a group.
struct CommitCopies {};

/// The thread waits until at most `pending` of its groups, the latest, are under way. Other threads see what was
/// copied after a barrier.
struct WaitCopies {
  int pending = 0;
};

/// Starts to add left * right^T, `depth` deep (16 to 64), to the sums (wgmma_sum_position) of 64 rows and right.rows
/// columns (16, 32, 64 or 128) that a warpgroup holds in a variable, f32 of right.rows / 2 lanes. left is a panel,
/// right is one, or two behind each other; rows are lines, or elements of lines where the operand is transposed. The
/// first ones are multiples of 1024 bytes, equal in all threads of a group. What lies there was filled for the stage
/// that this stands in, or stored before the pipeline, and is kept until the product is done; products are added in
/// order. From here to a WaitSums of the variable nothing but further products may use it.
///
/// Instead of a panel the left operand may be a value of bf16 or f16, depth / 2 lanes, of which the threads hold
/// places as of sums. It is computed anew only after such a wait.
struct Wgmma {
  VarId sums = none;
  int depth = wgmma_depth;
  MatrixTile left{}, right{};  ///< left.rows: 64; of a value the left one does not count
  ValueId left_first = none, right_first = none, left_value = none;
};

/// Waits until the products that are added to these variables are done.
struct WaitSums {
  std::vector<VarId> sums;
};

/// Adds left * right to a block of sums, as AMX's TDPBF16PS does it (evaluate_tile_sum). Element (m, n) of the sums
/// is sums.buffer[first + m * line + n], of f32; (m, k) of the left operand left.buffer[first + m * line
/// + k]; (k, n) of the right one, which lies in pairs of k, right.buffer[first + k / 2 * line + 2 * n + k % 2].
struct TileMma {
  struct Matrix {
    BufferId buffer = none;
    ValueId first = none, line = none;
  };
  Matrix sums{}, left{}, right{};
  int rows = 0, columns = 0;  ///< of the sums: 16 or 32
  ValueId depth = none;       ///< how many k: a multiple of tile_depth
  bool continues = false;     ///< whether it adds to what is there; else to zeros
  /// Elements are sums of three slices of bf16, of which slice_products are multiplied, in this order for each 32 k.
  /// Slice s of 32 k is a block of slice_elements with lines of 32 and of 64, at (k / 32 * 3 + s) * slice_elements.
  bool sliced = false;
  /// For every tile_depth k the caches are asked for so many lines of 64 bytes more of the left operand's buffer,
  /// from element `prefetch` on, which may be out of bounds. Nothing is asked for where it is none.
  ValueId prefetch = none;
  int prefetch_lines = 0;
};
inline constexpr int tile_side = 16, tile_depth = 32;
inline constexpr int tile_slices = 3, slice_elements = 2 * tile_side * tile_depth;
/// The products of slices that make one of f32 to its last bits, least first (Henry, Tang and Heinecke 2019,
/// "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations"). From one to the
/// next one operand mostly stays.
struct SliceProduct {
  int left, right;
};
inline constexpr SliceProduct slice_products[] = {{0, 2}, {0, 1}, {1, 1}, {1, 0}, {2, 0}, {0, 0}};

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

/// Every thread of the block (in a pipeline: every one that uses) waits for the others and sees their writes to
/// shared memory.
struct Barrier {};

/// Of a block's threads the first `consumers` use what the others copy to shared memory, which are up to `stages`
/// stages ahead. The loops of the body that lead to its one Stage, and what `produce` needs of what is computed in
/// them, are run by all threads; `produce` by the others alone, everything else by the consumers alone. It begins as
/// with a barrier.
struct StagePipeline {
  int stages = 0, consumers = 0;
  Block body;
};

/// One turn of a pipeline: `produce`, and when its copies have arrived, `consume`. `slot` is the number of turns
/// before, modulo the pipeline's stages. A producer waits until the consumers, and the products that they started,
/// are through with the turn that had this slot before: with that of one turn, when those of the next one are started
/// or waited for.
struct Stage {
  ValueId slot = none;
  Block produce, consume;
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
  std::variant<Compute, Store, Prefetch, AsyncCopy, CopyBox, CommitCopies, WaitCopies, Wgmma, WaitSums, TileMma,
               SetVar, Alloc, Barrier, Check, Loop, Branch, StagePipeline, Stage>
      node;
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
  /// Whether all threads of a block, or of a warp, take part in the statement: a barrier, an mma, a from_lane or
  /// _consumers, products of a warpgroup, a pipeline. Loops and branches are not looked into.
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
