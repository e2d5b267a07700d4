#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "passes/program/program.h"

namespace lathe {

/// The offsets of a program's temporaries in one arena, for one binding of the dims.
struct MemoryPlan {
  struct Block {
    int buffer;
    std::int64_t offset, bytes;  ///< for scratch: of all threads, see scratch_stride()
    int first, last;             ///< launches during which it must keep its contents
  };
  std::vector<Block> blocks;        ///< every temporary that some launch touches
  std::int64_t arena_bytes = 0;     ///< size of the arena
  std::int64_t lower_bound = 0;     ///< maximum that is live at one launch: no plan can need less
  int peak_launch = -1;             ///< launch of this maximum
  std::int64_t argument_bytes = 0;  ///< inputs, states, outputs and constants, outside the arena
  std::int64_t kept_bytes = 0;      ///< packed copies of parameters, those for all sizes together

  std::int64_t total_bytes() const { return arena_bytes + argument_bytes + kept_bytes; }
};

/// Plans memory from lifetimes by launch, with offsets by place_blocks (passes/memory/block_placement.h). Blocks are
/// aligned to 64 bytes. `threads`: the number of threads with scratch. Throws UserError [dim_overflow] if a size does
/// not fit 64 bits. To plan one program for several sizes, use a MemoryPlanner (passes/memory/memory_planner.h).
MemoryPlan plan_memory(const Program& program, const DimBindings& dims, int threads = 1);

/// Throws InternalError if two blocks that are live at the same time overlap, or if one is outside the arena.
void verify_plan(const MemoryPlan& plan);

/// Returns the bytes of this many elements, rounded up to the alignment. Throws UserError [dim_overflow].
std::int64_t aligned_bytes(DType dtype, std::int64_t elements);
/// Returns these bytes for one thread's part of a buffer.
std::int64_t buffer_bytes(const ProgramBuffer& buffer, const DimBindings& dims);

/// Returns the distance in bytes between the copies of a scratch buffer of two threads: a page more than its size.
/// Processors prefetch along a stream up to the end of its page. If that is another thread's scratch, they take its
/// cache lines from the other core's cache while it writes them.
std::int64_t scratch_stride(const ProgramBuffer& buffer, const DimBindings& dims);
std::int64_t scratch_stride(std::int64_t bytes);  ///< for a buffer of this size

/// Describes the peak, its lower bound, and the blocks that are live at the peak, largest first, in at most `most`
/// lines.
std::string describe(const MemoryPlan& plan, const Program& program, int most = 10);

/// Returns the memory of packed copies as the end of a list, ", packed weights 106 MiB", or nothing if there are
/// none.
std::string kept_text(const MemoryPlan& plan);

/// Lists every block by offset: its position, size, launches and value.
std::string print_plan(const MemoryPlan& plan, const Program& program);

/// Formats bytes: "1.25 GiB", "512 KiB", "20 B".
std::string format_bytes(std::int64_t bytes);

}  // namespace lathe
