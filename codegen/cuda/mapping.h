#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/machine/gpu_info.h"

namespace lathe::cuda {

/// How a kernel's block and thread loops lie on the machine. The iterations of block.x loops are the blocks along x,
/// those of thread.x loops the threads of a block along x; where two loops of one kind have different trip counts,
/// the larger one counts and the other leaves the rest idle.
struct Mapping {
  std::array<int, 3> threads = {1, 1, 1};  ///< of a block
  std::int64_t shared_bytes = 0;           ///< of a block
  int shared_alignment = 16;               ///< bytes
  int blocks_at_once = 0;                  ///< that are to run on a multiprocessor; 0: as many as can
  int block_size() const { return threads[0] * threads[1] * threads[2]; }
};

/// Reads the mapping off a verified kernel. Throws InternalError with the label of the rule that it breaks:
///   machine_hook    machine operations have a hook
///   mapped          no parallel loop: that is a CPU's schedule
///   thread_bounds   thread loops have constant bounds, and a block no more threads than the GPU allows
///   barrier_threads a thread loop with a barrier inside is as long as any other of its kind, so that every thread of
///                   the block meets the barrier
///   thread_store    stores to parameters and to shared memory stand inside a thread loop
///   scratch_offset  stack and register scratch is allocated inside the thread loops that use it: each thread has its
///                   own
Mapping mapping_of(const kernel::Kernel& kernel, const GpuInfo& gpu);

/// How many blocks a launch with these dims needs along x, y, z: at least 1 each. Throws UserError [grid_size] beyond
/// what the GPU allows. Bounds of block loops follow from the dims alone, or
/// InternalError [block_bounds].
std::array<std::int64_t, 3> grid_of(const kernel::Kernel& kernel, const GpuInfo& gpu,
                                    std::span<const std::int64_t> dims);

/// What a map of a kernel is for these dims: a tensor from element `offset` of the parameter `buffer` on, the
/// innermost dim first, with the strides, in elements, of all but that one.
struct MappedTensor {
  kernel::BufferId buffer = kernel::none;
  std::int64_t offset = 0;
  std::vector<std::int64_t> sizes, strides;
  std::vector<int> box;
};
std::vector<MappedTensor> mapped_tensors(const kernel::Kernel& kernel, std::span<const std::int64_t> dims);

/// Bytes that the offset of a buffer in shared memory is a multiple of: those of tiles, or 16.
int shared_alignment(const kernel::Kernel& kernel, kernel::BufferId buffer);
/// Where `bytes` of shared memory begin if `used` are taken, which then counts them.
std::int64_t allocate_shared(std::int64_t& used, std::int64_t bytes, int alignment);

/// The iterations of a loop whose bounds are constants; -1 where they are not.
std::int64_t constant_trip_count(const kernel::Kernel& kernel, const kernel::Loop& loop);

bool is_block(kernel::LoopKind kind);
bool is_thread(kernel::LoopKind kind);
/// 0, 1, 2 for the x, y, z of a block or thread loop.
std::size_t axis_of(kernel::LoopKind kind);
bool has_barrier(const kernel::Block& block);

}  // namespace lathe::cuda
