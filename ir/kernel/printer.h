#pragma once

#include <string>

#include "ir/kernel/kernel.h"

namespace lathe::kernel {

/// Returns the kernel as text, with its notes. Ids are numbered by first appearance, so equal kernels have equal
/// text.
///
///   kernel @scale(x: read f32, y: write f32; rows, cols) {
///     note "%3 mul mlp.cpp:14"
///     for i0 in 0..rows step 1 @parallel {
///       for i1 in 0..cols step 16 @serial {
///         %0 = mul i0, cols : i64
///         ...
std::string print(const Kernel& kernel);

/// Returns the text without notes, and with kernel, buffers and dims renamed by position. Kernels that need the same
/// code have equal text; caches use it as their key.
std::string canonical_text(const Kernel& kernel);

}  // namespace lathe::kernel
