#pragma once

#include "passes/lowering/lower.h"

namespace lathe {

/// An NVIDIA GPU. Its own passes are cast_before_views and pad_products.
Machine gpu_machine(const GpuInfo& gpu);

/// Turns a graph of primitives into kernels for blocks and threads, as lower_cpu does for CPUs: the same fused
/// regions and the same elementwise programs, under the schedules of gpu_kernels.h. Kernels are named after their ops
/// and the line of the last one: "k3_rows_softmax_mha_cpp_14". There are no float atomics: every sum has a fixed
/// order that follows from the shapes, so results are the same bits run to run.
Program lower_gpu(const ir::Graph& graph, const LowerOptions& options = {});
/// The same for sm_90a alone, whose warpgroups multiply bf16 and f16 by wgmma where that ends first.
Program lower_gpu_sm_90a(const ir::Graph& graph, const LowerOptions& options = {});

}  // namespace lathe
