#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/hardware/gpu_info.h"
#include "ir/kernel/kernel.h"

namespace lathe::cuda {

/// How a kernel's block and thread loops map to the launch. The iterations of block.x loops are the blocks along x;
/// those of thread.x loops are the threads of a block along x. If loops of one kind have different trip counts, the
/// largest determines the size, and the others leave the rest idle.
struct Mapping {
  std::array<int, 3> threads = {1, 1, 1};  ///< per block
  std::int64_t shared_bytes = 0;           ///< per block
  int shared_alignment = 16;               ///< bytes
  int blocks_at_once = 0;                  ///< resident blocks per multiprocessor; 0: no requirement
  /// All blocks of a launch are resident at the same time, wait for each other, and have their shared memory passed
  /// at launch: a kernel of phases. The word after the status word belongs to them.
  bool is_resident = false;
  /// If blocks are numbered in the order in which they start: the parameter whose element 0 counts them, and the
  /// offset of the number in shared memory, after everything else.
  kernel::BufferId started = kernel::none;
  std::int64_t block_number = 0;
  int block_size() const { return threads[0] * threads[1] * threads[2]; }
};

/// Returns the mapping of a verified kernel. Throws InternalError with the label of the rule that the kernel breaks:
///   machine_hook    intrinsics have a hook
///   mapped          no parallel loop: that is a CPU's schedule
///   thread_bounds   thread loops have constant bounds, and a block no more threads than the GPU allows
///   barrier_threads a thread loop that contains a barrier is the longest of its kind, so that all threads of the
///                   block reach the barrier
///   thread_store    stores to parameters and to shared memory are inside a thread loop
///   phase_block     phases need no larger alignment of shared memory than 16 bytes
///   scratch_offset  stack and register scratch is allocated inside the thread loops that use it: each thread has its
///                   own
Mapping mapping_of(const kernel::Kernel& kernel, const GpuInfo& gpu);

/// Returns the number of blocks along x, y, z for a launch with these dims, at least 1 each; of a kernel of phases,
/// the blocks that can have work, of which as many are launched as can be resident. Throws UserError [grid_size] if
/// it exceeds the GPU's limits, and InternalError [block_bounds] if bounds of block loops depend on more than dims.
std::array<std::int64_t, 3> grid_of(const kernel::Kernel& kernel, const GpuInfo& gpu,
                                    std::span<const std::int64_t> dims);

/// A tensor map bound to dims: a tensor in the parameter `buffer` from element `offset`, innermost dim first. Strides
/// are in elements and omit the innermost dim.
struct MappedTensor {
  kernel::BufferId buffer = kernel::none;
  std::int64_t offset = 0;
  std::vector<std::int64_t> sizes, strides;
  std::vector<int> box;
};
std::vector<MappedTensor> mapped_tensors(const kernel::Kernel& kernel, std::span<const std::int64_t> dims);

/// Returns the alignment in bytes of a buffer in shared memory: that of tiles, or 16.
int shared_alignment(const kernel::Kernel& kernel, kernel::BufferId buffer);
/// Returns the offset of `bytes` of shared memory allocated after the first `used`, and updates `used`.
std::int64_t allocate_shared(std::int64_t& used, std::int64_t bytes, int alignment);

/// Returns the number of resident blocks per multiprocessor that ptxas has to leave registers for; 0: no requirement.
/// Blocks that take half of the static shared memory have accumulator tiles to keep in registers: one.
int resident_blocks(const Mapping& mapping, const GpuInfo& gpu);

/// Returns the trip count of a loop with constant bounds, otherwise -1.
std::int64_t constant_trip_count(const kernel::Kernel& kernel, const kernel::Loop& loop);

bool is_block(kernel::LoopKind kind);
bool is_thread(kernel::LoopKind kind);
/// Returns 0, 1, 2 for the x, y, z of a block or thread loop.
std::size_t axis_of(kernel::LoopKind kind);
bool has_barrier(const kernel::Block& block);

}  // namespace lathe::cuda
