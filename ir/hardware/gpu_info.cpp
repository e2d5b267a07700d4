#include "ir/hardware/gpu_info.h"

#include <fmt/core.h>

#include <algorithm>

namespace lathe {

namespace {

constexpr GpuInfo gpus[] = {
    {},
    {.name = "sm_90a",
     .chips = "H100, H200",
     .multiprocessors = 132,
     .most_shared_bytes = 227 << 10,
     .l2_bytes = 50 << 20,
     .wgmma = true,
     .fma_flops = 0.507e12},
};

}  // namespace

std::span<const GpuInfo> gpu_infos() { return gpus; }

const GpuInfo& gpu_info(std::string_view name) {
  const auto* const found = std::ranges::find(gpus, name, &GpuInfo::name);
  return found == std::end(gpus) ? gpus[0] : *found;
}

int fma_lanes(int capability) { return capability == 80 ? 64 : 128; }

std::string to_string(const GpuInfo& info) {
  const auto row = [](std::string_view what, const std::string& text) {
    return fmt::format("{:<12} {}\n", what, text);
  };
  return row("processors", fmt::format("{}, warps of {} threads, blocks of up to {}", info.multiprocessors,
                                       info.warp_threads, info.most_block_threads)) +
         row("shared", fmt::format("{} KiB a block, up to {} KiB on demand", info.static_shared_bytes >> 10,
                                   info.most_shared_bytes >> 10)) +
         row("tensor cores", info.wgmma ? "mma, wgmma" : "mma") +
         row("costs",
             fmt::format(
                 "{:.1f} TB/s of memory, {:.1f} us a launch, {:.1f} TFLOP/s of bf16 a multiprocessor, {:.2f} of f32",
                 info.bytes_per_second * 1e-12, info.launch_seconds * 1e6, info.tensor_flops * 1e-12,
                 info.fma_flops * 1e-12));
}

}  // namespace lathe
