#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "passes/program/program.h"

namespace lathe {

/// Where a program's temporaries lie in one arena, for one binding of the dims.
struct MemoryPlan {
  struct Block {
    int buffer;
    std::int64_t offset, bytes;  ///< of scratch: of all threads, see scratch_stride()
    int first, last;             ///< launches during which it must keep its contents
  };
  std::vector<Block> blocks;        ///< every temporary that some launch touches
  std::int64_t arena_bytes = 0;     ///< what the arena takes
  std::int64_t lower_bound = 0;     ///< the most that is live at one launch: no plan can take less
  int peak_launch = -1;             ///< where that is
  std::int64_t argument_bytes = 0;  ///< inputs, states, outputs and constants, outside the arena

  std::int64_t total_bytes() const { return arena_bytes + argument_bytes; }
};

/// Lifetimes by launch, offsets by place_blocks (passes/memory/block_placement.h). Blocks are aligned to 64 bytes.
/// `threads`: how many have scratch. Throws UserError [dim_overflow] where a size does not fit 64 bits. Who plans one
/// program for several sizes does so by a MemoryPlanner (passes/memory/memory_planner.h).
MemoryPlan plan_memory(const Program& program, const DimBindings& dims, int threads = 1);

/// Throws InternalError where two blocks that live at the same time overlap, or one lies outside the arena.
void verify_plan(const MemoryPlan& plan);

/// The bytes that so many elements take, a multiple of the alignment. UserError [dim_overflow].
std::int64_t aligned_bytes(DType dtype, std::int64_t elements);
/// The same of one thread's part of a buffer.
std::int64_t buffer_bytes(const ProgramBuffer& buffer, const DimBindings& dims);

/// From one thread's copy of a scratch buffer to the next one's, bytes: a page more than it takes. Processors
/// prefetch what follows a stream up to the end of its page; where that is another thread's scratch, they take its
/// cache lines from the other core's cache while it writes them.
std::int64_t scratch_stride(const ProgramBuffer& buffer, const DimBindings& dims);
std::int64_t scratch_stride(std::int64_t bytes);  ///< of a buffer that takes so many

/// The peak, its lower bound, and who is alive at the peak, largest first, at most `most` lines.
std::string describe(const MemoryPlan& plan, const Program& program, int most = 10);

/// Every block, by offset: where it lies, how long, during which launches, and what for.
std::string print_plan(const MemoryPlan& plan, const Program& program);

/// "1.25 GiB", "512 KiB", "20 B".
std::string format_bytes(std::int64_t bytes);

}  // namespace lathe
