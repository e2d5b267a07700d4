#pragma once

#include <string>

#include "codegen/cuda/index/index_width.h"
#include "ir/hardware/gpu_info.h"
#include "ir/kernel/kernel.h"

namespace lathe::cuda {

/// Returns a kernel with block and thread loops as CUDA C++ that includes lathe.cuh:
///
///   // %3 mul mlp.cpp:14
///   extern "C" __global__ void __launch_bounds__(256)
///   scale(const f32* __restrict__ x, f32* __restrict__ y, const i64 n, u64* const status) {
///     if (const i32 i0 = i32(blockIdx.x) * 1024; i0 < i32(n)) {
///       const i32 i1 = i32(threadIdx.x) * 4;
///       ...
///
/// The parameters are the kernel's buffers, its dims, and the status word of `check`. Launch it with mapping_of's
/// threads and grid_of's blocks; pointers must be multiples of 16. Shared memory beyond GpuInfo::static_shared_bytes
/// is not declared in the text but passed at launch. Text with 32-bit indices is valid for dims that int32_suffices()
/// accepts. Throws InternalError with mapping_of's labels.
std::string emit(const kernel::Kernel& kernel, const GpuInfo& gpu, Indices indices = Indices::int32);

/// Returns the name of the function that emit() defines: the kernel's name as an identifier.
std::string symbol_of(const kernel::Kernel& kernel);

}  // namespace lathe::cuda
