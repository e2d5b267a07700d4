#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/tensor/graph.h"
#include "ir/tensor/mesh/exchange_kind.h"
#include "passes/program/launch_info.h"

namespace lathe {

/// A piece of memory that a program works in. Sizes are formulas in the graph's dims, evaluated when they are bound.
struct ProgramBuffer {
  enum class Kind {
    input,      ///< bound by the caller for a run; read only
    state,      ///< a parameter or state, kept from run to run; may be written
    output,     ///< a result for the caller
    constant,   ///< `data`
    temporary,  ///< in the arena; dead outside [first launch that touches it, last]
    scratch,    ///< in the arena during its launch, once for each thread that runs it; undefined when a task starts
  };
  Kind kind = Kind::temporary;
  std::string name;  ///< argument or output name; for a temporary the value it holds, such as "%12 softmax"
  DType dtype = f32;
  Dim elements = 0;  ///< how many to allocate (of scratch: for each thread)
  NumberList data;   ///< of a constant
  Location loc;
  bool has_room = false;  ///< a workspace: of its elements some may stay unwritten, which nobody reads
};

/// The kernels that a product can run by. They differ in speed and workspaces; results are the same bits.
struct TuningCandidates {
  std::string problem;             ///< the kernels that it takes by default, in canonical text
  std::vector<std::string> names;  ///< of the candidates: their tile sizes in words, the default first
};

/// One run of one kernel over bound buffers.
struct Launch {
  int kernel = -1;                  ///< index into Program::kernels
  std::vector<int> buffers;         ///< program buffers, in the order of the kernel's parameters
  std::vector<Dim> dims;            ///< values of the kernel's dims
  Dim work = 1;                     ///< rough scalar operations in one iteration of the parallel loop, to size chunks
  Dim flops = 0;                    ///< multiply-adds count two; products and reductions only
  Dim bytes = 0;                    ///< that must be read and written at least once
  LaunchInfo info = {};             ///< what it does, and for which ops
  Location loc;                     ///< of the last of them
  std::vector<std::string> checks;  ///< what to say when the kernel's check i + 1 fails
  std::vector<int> partial = {};    ///< parameters of which it writes a part and leaves the rest as it was
  /// The first node of its region, of which it makes a part, beside launches that make the others and touch nothing
  /// of this one; they have the same checks or none. -1 where it stands alone.
  int part_of = -1;
  std::shared_ptr<const TuningCandidates> tuning = nullptr;  ///< of products, where LowerOptions::tuning asks for it
  int candidate = 0;                                         ///< index into `tuning->names`

  bool runs(ir::ValueId id) const;             ///< whether the node is among its ops
  std::vector<std::string> names() const;      ///< of its ops: "%5 softmax"
  bool leaves_remainder(int parameter) const;  ///< whether it is one of `partial`
};

/// What processes exchange along one axis of their mesh, in one step: on its way while launches run.
struct Exchange {
  using Kind = ir::ExchangeKind;
  /// One value. Of n processes' pieces number r has the elements [r * p, r * p + p) as far as there are some, where
  /// p = ceil(elements / n).
  struct Part {
    int from = -1, to = -1;  ///< program buffers; one where a gather finds this process's piece in its place
    Dim elements = 0;        ///< of `from`
    int received = -1;       ///< where there is a fold: what it reads, see `window`
    int folded = -1;         ///< of all_reduce: the process's own piece of the result
    /// In the order of processes, from `received` to `folded` or `to`; by whoever exchanges, as one iteration after
    /// the other. Its dims: how many processes, and the elements of all of them (one where these are equal).
    std::optional<Launch> fold = {};
    /// The most elements of a piece that are folded at once. `received` takes as many of each process one behind the
    /// other, and where a piece has more, twice that: what comes next comes while a fold runs. 0: all at once, p
    /// elements from one process to the next.
    std::int64_t window = 0;
    LaunchOp op = {};
    Location loc = {};
  };
  Kind kind = Kind::all_reduce;
  std::string axis;
  std::int64_t ranks = 1;
  std::int64_t offset = 0;  ///< of send_recv: how many places further it goes, below ranks
  std::vector<Part> parts;
  int start = 0;  ///< it may begin when the launches before this one are done
  int done = 0;   ///< it must be over before this launch
};

/// The program buffers that an exchange touches; `f(buffer, writes)`.
template <class F>
void for_buffers(const Exchange& exchange, F&& f) {
  for (const Exchange::Part& part : exchange.parts) {
    f(part.from, false);
    f(part.to, true);
    if (part.received >= 0) f(part.received, true);
    if (part.folded >= 0) f(part.folded, true);
  }
}

/// A kind of values (one op at one source line, in all layers) that is computed again instead of being kept.
struct RecomputedKind {
  std::string what;                 ///< "gelu f32[B, T, 3072] gpt.cpp:83"
  int values = 0;                   ///< of that kind
  std::int64_t bytes_together = 0;  ///< that the whole program takes once this kind, and those before it, are
};

/// A graph turned into kernels: what an executable runs.
struct Program {
  std::string name;
  int regions = 0;                      ///< fused regions of the graph
  std::vector<kernel::Kernel> kernels;  ///< distinct ones: identical layers share them
  std::vector<ProgramBuffer> buffers;
  std::vector<Launch> launches;
  std::vector<Exchange> exchanges;  ///< in the order in which every process carries them out; `start` never falls
  std::vector<ir::DimCheck> checks;
  /// Argument and output types by name, in the order of the graph.
  struct Slot {
    std::string name;
    DType dtype;
    Shape shape;
    int buffer;
    bool is_parameter = false;  ///< of states: declared with parameter()
    bool is_updated = false;    ///< of states: a run gives it a new value
  };
  std::vector<Slot> inputs, states, outputs;
  std::vector<RecomputedKind> recomputed = {};  ///< to fit a memory budget, in the order in which it was decided
};

/// The launches while which an exchange may be on its way, [first, last]: of one that no launch runs beside, the
/// next.
struct ExchangeSpan {
  int first, last;
};
ExchangeSpan span_of(const Exchange& exchange, const Program& program);

/// Whether everything that the launch writes is empty, scratch aside. Then it is not run: its loops may still be long
/// ones, over rows of no columns.
bool writes_nothing(const Program& program, const Launch& launch, const DimBindings& dims);

}  // namespace lathe
