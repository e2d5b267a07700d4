#pragma once

#include <cstdint>

namespace lathe::codegen {

/// Bytes of the workspace of an entry's driver: for the launches, and for each worker.
struct WorkspaceSize {
  std::int64_t fixed = 0, per_worker = 0;
};

inline constexpr std::int64_t word_bytes = 8;

/// Where workspaces start, in bytes. The workspace of a GPU starts like memory of cuMemAlloc.
inline constexpr std::int64_t cpu_workspace_alignment = 64, gpu_workspace_alignment = 256;

/// Rounds bytes up to a multiple of an alignment.
constexpr std::int64_t aligned_to(std::int64_t alignment, std::int64_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}
constexpr std::int64_t aligned_on_cpu(std::int64_t bytes) { return aligned_to(cpu_workspace_alignment, bytes); }
constexpr std::int64_t aligned_on_gpu(std::int64_t bytes) { return aligned_to(gpu_workspace_alignment, bytes); }

}  // namespace lathe::codegen
