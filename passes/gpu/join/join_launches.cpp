#include "passes/gpu/join/join_launches.h"

#include <algorithm>
#include <utility>

#include "passes/gpu/join/joined_kernel.h"

namespace lathe::gpu {

namespace {

constexpr int least_launches = 4;  ///< fewer do not pay for a cooperative launch and its barriers
/// Memory traffic of a launch that reads no weights. Larger ones need more threads than a grid of phases has.
constexpr std::int64_t most_bytes = 8 << 20;
/// Of a product, which reads its weights once: a GEMV. Any size of it is limited by memory bandwidth.
constexpr std::int64_t most_flops_per_byte = 16;
/// Waits prefetch weights and caches up to this part of L2 ahead, in eighths. Both halves of L2 may hold a copy.
constexpr std::int64_t l2_eighths = 3;
/// Assumed for a size that is bound late, such as the length of a cache.
constexpr std::int64_t most_late_size = 4096;

std::int64_t nominal(const Dim& size) { return nominal_size(size, most_late_size); }

class Joiner {
 public:
  Joiner(Program& program, const GpuInfo& gpu) : program_(program), gpu_(gpu), launches_(program.launches) {
    for (const kernel::Kernel& kernel : program.kernels) can_be_phase_.push_back(suits(kernel));
  }

  void run() {
    const int count = static_cast<int>(launches_.size());
    for (int first = 0, end = 0; first < count; first = std::max(end, first + 1)) {
      JoinedKernel joined(program_, first);
      for (end = first; end < count && is_joined(end) && joined.has_room_for(launches_[end]); ++end)
        joined.add(launches_[end]);
      if (end - first < least_launches) continue;
      Launch launch = std::move(joined).finish(program_, known_, gpu_.l2_bytes / 8 * l2_eighths);
      program_.joined.push_back({first, end, std::move(launch)});
    }
  }

 private:
  bool suits(const kernel::Kernel& kernel) const {
    std::int64_t shared = 0;
    for (const kernel::BufferInfo& buffer : kernel.buffers)
      if (buffer.space == kernel::Space::shared)
        shared += buffer.count * static_cast<std::int64_t>(size_in_bytes(buffer.dtype));
    return kernel::can_be_phase(kernel) && shared <= gpu_.static_shared_bytes;
  }

  bool is_repeated(int l) const {
    return std::ranges::any_of(program_.loops, [&](const ProgramLoop& loop) { return loop.contains(l); });
  }

  /// A launch is joined if its kernel can be a phase, every run executes it once on buffers at multiples of 16 bytes,
  /// and it is a GEMV, or reads and writes little.
  bool is_joined(int l) const {
    const Launch& launch = launches_[l];
    const auto is_slice = [&](int buffer) { return program_.buffers[buffer].slice.has_value(); };
    if (!can_be_phase_[launch.kernel] || launch.condition || is_repeated(l) ||
        std::ranges::any_of(launch.buffers, is_slice))
      return false;
    const std::int64_t bytes = nominal(launch.bytes);
    if (launch.info.kind == RegionKind::product) return nominal(launch.flops) <= most_flops_per_byte * bytes;
    return bytes <= most_bytes;
  }

  Program& program_;
  const GpuInfo& gpu_;
  const std::vector<Launch>& launches_;
  std::vector<bool> can_be_phase_;  // by kernel
  JoinedKernels known_;
};

}  // namespace

void join_launches(Program& program, const GpuInfo& gpu) {
  // Launches and collectives would have to overlap phase by phase.
  if (program.collectives.empty()) Joiner(program, gpu).run();
}

}  // namespace lathe::gpu
