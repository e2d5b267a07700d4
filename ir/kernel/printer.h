#pragma once

#include <string>

#include "ir/kernel/kernel.h"

namespace lathe::kernel {

/// The kernel as text, with its notes; ids are numbered in the order of appearance, so equal kernels print equally.
///
///   kernel @scale(x: read f32, y: write f32; rows, cols) {
///     // %3 mul mlp.cpp:14
///     for i0 in 0..rows step 1 @parallel {
///       for i1 in 0..cols step 16 @serial {
///         %0 = mul i0, cols : i64
///         ...
std::string print(const Kernel& kernel);

/// The same text without notes, and with kernel, buffers and dims renamed by position: equal for kernels that need
/// the same code. The key of caches.
std::string canonical_text(const Kernel& kernel);

}  // namespace lathe::kernel
