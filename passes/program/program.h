#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/tensor/graph.h"
#include "ir/tensor/mesh/collective_kind.h"
#include "passes/program/launch_info.h"

namespace lathe {

/// One iteration's part of a buffer: in iteration t of the loop it starts at element t * stride of the buffer.
struct BufferSlice {
  int of = -1;           ///< an argument, output, constant or temporary, or a slice by a loop around this one
  int loop = -1;         ///< index into Program::loops; only launches in the loop may access the slice
  Dim stride = 0;        ///< elements between the parts of consecutive iterations
  bool reverse = false;  ///< iteration t accesses the part number trips - 1 - t
  bool operator==(const BufferSlice&) const = default;
};

/// A buffer of a program. Its size is a formula over the graph's dims and is evaluated when they are bound.
struct ProgramBuffer {
  enum class Kind {
    input,      ///< bound by the caller for a run; read only
    state,      ///< a parameter or state; persists between runs; may be written
    output,     ///< a result for the caller
    constant,   ///< `data`
    temporary,  ///< in the arena; live from the first to the last launch that accesses it
    kept,       ///< a packed copy of parameters; persists between runs, see kept_launches()
    scratch,    ///< in the arena during its launch, one per thread; contents are undefined when a task starts
    slice,      ///< part of another buffer, without memory of its own
  };
  using Slice = BufferSlice;
  Kind kind = Kind::temporary;
  std::string name;  ///< argument or output name; for a temporary the value it holds, such as "%12 softmax"
  DType dtype = f32;
  Dim elements = 0;  ///< number of elements to allocate (for scratch: per thread; for a slice: of one iteration)
  NumberList data;   ///< of a constant
  Location loc;
  bool has_room = false;            ///< a workspace: may contain elements that are neither written nor read
  std::optional<Slice> slice = {};  ///< of Kind::slice
};

/// The kernels that can compute a matmul. They differ in speed and workspaces; results are bit-identical.
struct TuningCandidates {
  std::string problem;             ///< canonical text of the default kernels
  std::vector<std::string> names;  ///< tile sizes of each candidate, as text; the default is first
};

/// The sizes with which a launch runs. Two launches may compute the same values in different ways, one for less than
/// `limit` rows and one for the others.
struct SizeCondition {
  Dim size = 0;
  std::int64_t limit = 0;
  bool is_below = false;  ///< runs if size < limit; otherwise, if size >= limit

  bool holds(std::int64_t value) const { return (value < limit) == is_below; }
  /// Returns the condition that holds for the other sizes.
  SizeCondition negated() const { return {size, limit, !is_below}; }
  bool operator==(const SizeCondition&) const = default;
};

/// The elements of a parameter that a launch reads, if they are rows at one distance: [first + i * stride, first + i
/// * stride + count) for each i in [0, rows). For the rows in use of a cache.
struct RowsRead {
  int parameter = -1;
  Dim first = 0, count = 0, rows = 0, stride = 0;
  bool operator==(const RowsRead&) const = default;
};

/// One run of one kernel over bound buffers.
struct Launch {
  int kernel = -1;                              ///< index into Program::kernels
  std::vector<int> buffers;                     ///< program buffers, in the order of the kernel's parameters
  std::vector<Dim> dims;                        ///< values of the kernel's dims
  Dim work = 1;                                 ///< scalar operations per iteration of the parallel loop, approximate
  Dim flops = 0;                                ///< a multiply-add counts as two; only matmuls and reductions
  Dim bytes = 0;                                ///< minimum memory traffic
  LaunchInfo info = {};                         ///< its role, and the ops that it computes
  Location loc;                                 ///< of the last op
  std::vector<std::string> checks;              ///< error message of the kernel's check i + 1
  std::optional<SizeCondition> condition = {};  ///< if set, the launch is skipped unless the condition holds
  std::vector<int> partial = {};                ///< parameters that it writes only partially, preserving the rest
  std::vector<RowsRead> rows_read = {};         ///< of states of which it reads a part
  /// The first node of the region, if this launch computes one part of it. The launches of the other parts are
  /// independent of this one, and have the same checks or none. -1 otherwise.
  int part_of = -1;
  std::shared_ptr<const TuningCandidates> tuning = nullptr;  ///< of matmuls, if LowerOptions::tuning requests it
  int candidate = 0;                                         ///< index into `tuning->names`

  bool runs(ir::ValueId id) const;             ///< whether it computes the node
  std::vector<std::string> names() const;      ///< of its ops: "%5 softmax"
  bool leaves_remainder(int parameter) const;  ///< whether the parameter is in `partial`
};

/// Launches [first, end) that run `trips` times, in order. Sequences are accessed through slices. A temporary carries
/// a value from one iteration to the next: launches before the loop write its first value.
struct ProgramLoop {
  int first = 0, end = 0;
  Dim trips = 0;          ///< may be 0
  std::string name = {};  ///< "lstm", for text and errors
  Location loc = {};

  bool contains(int launch) const { return first <= launch && launch < end; }
};

/// Launches [first, end) that a GPU runs as the phases of one kernel, if it can. Each of them gives the same bits as
/// on its own.
struct JoinedLaunches {
  int first = 0, end = 0;
  Launch launch = {};  ///< of the kernel whose phases are those launches

  bool contains(int l) const { return first <= l && l < end; }
};

/// A collective along one mesh axis, executed as one step. It may overlap with launches.
struct Collective {
  using Kind = ir::CollectiveKind;
  /// One value. Chunk r of n processes consists of the elements [r * p, r * p + p) within bounds, where p =
  /// ceil(elements / n).
  struct Part {
    int from = -1, to = -1;  ///< program buffers; equal if a gather has this process's chunk already in place
    Dim elements = 0;        ///< of `from`
    int received = -1;       ///< input of `fold`, see `window`; -1 without a reduction
    int folded = -1;         ///< for all_reduce: this process's chunk of the result
    /// Reduces in rank order, from `received` to `folded` or `to`. It runs on the communicating thread, as sequential
    /// iterations. Its dims: the number of processes, and the total number of elements (a single dim if both are
    /// equal).
    std::optional<Launch> fold = {};
    /// Maximum number of elements of a chunk that are reduced at a time. `received` holds one window per process, one
    /// after the other, or two if a chunk is longer than a window, so that the next one arrives while one is reduced.
    /// 0: whole chunks, p elements per process.
    std::int64_t window = 0;
    LaunchOp op = {};
    Location loc = {};
  };
  Kind kind = Kind::all_reduce;
  std::string axis;
  std::int64_t ranks = 1;
  std::int64_t offset = 0;  ///< send_recv: distance between ranks, less than `ranks`
  std::vector<Part> parts;
  int start = 0;  ///< may start once all launches before this one have finished
  int done = 0;   ///< must finish before this launch
};

/// Calls f(buffer, writes) for each program buffer that a collective accesses.
template <class F>
void for_buffers(const Collective& collective, F&& f) {
  for (const Collective::Part& part : collective.parts) {
    f(part.from, false);
    f(part.to, true);
    if (part.received >= 0) f(part.received, true);
    if (part.folded >= 0) f(part.folded, true);
  }
}

/// A kind of values (one op at one source line, in all layers) that is recomputed instead of saved.
struct RecomputedKind {
  std::string what;                 ///< "gelu f32[B, T, 3072] gpt.cpp:83"
  int values = 0;                   ///< number of values of this kind
  std::int64_t bytes_together = 0;  ///< memory of the whole program with this and all previous kinds recomputed
};

/// The kernels and launches of a graph, ready for an executable.
struct Program {
  std::string name;
  int regions = 0;                      ///< fused regions of the graph
  std::vector<kernel::Kernel> kernels;  ///< distinct kernels; identical layers share them
  std::vector<ProgramBuffer> buffers;
  std::vector<Launch> launches;
  /// Loops over launches. Ranges nest or are disjoint; a loop comes before the loops in it.
  std::vector<ProgramLoop> loops = {};
  std::vector<JoinedLaunches> joined = {};  ///< disjoint, in order
  std::vector<Collective>
      collectives;  ///< in the order in which every process executes them; `start` never decreases
  std::vector<ir::DimCheck> checks;
  /// Argument and output types by name, in graph order.
  struct Slot {
    std::string name;
    DType dtype;
    Shape shape;
    int buffer;
    bool is_parameter = false;  ///< of states: declared with parameter()
    bool is_updated = false;    ///< of states: a run assigns a new value
  };
  std::vector<Slot> inputs, states, outputs;
  std::vector<RecomputedKind> recomputed = {};  ///< to fit a memory budget, in order of the decisions
};

/// The launches [first, last] that may overlap with a collective. If none may, both are the launch at its start.
struct CollectiveSpan {
  int first, last;
};
CollectiveSpan span_of(const Collective& collective, const Program& program);

/// Returns whether a run skips the launch: its condition does not hold, or all its outputs are empty, not counting
/// scratch. A launch without outputs is worth skipping because its loops may be long: over rows without columns.
bool is_skipped(const Program& program, const Launch& launch, const DimBindings& dims);

}  // namespace lathe
