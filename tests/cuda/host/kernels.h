#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/kernel/interpret/interpreter.h"

/// Kernels with blocks and threads that several tests use, and checks that mistakes in their text are detected.
namespace lathe::test {

/// y[i] = x[i] * 2 for i < n: blocks of 32 threads with 4 elements per thread, masked tail.
kernel::Kernel scale_kernel();
/// Each block of 32 threads reverses its 32 elements through shared memory; without the barrier it has a race.
kernel::Kernel reverse_kernel(bool with_barrier = true);
/// out[row] = sum over col of x[row, col]: a block per row, a tree over 64 threads in shared memory.
kernel::Kernel row_sum_kernel();
/// y[t] = the value loaded by thread (7 t + 3) rem 32 of its warp, for 64 threads.
kernel::Kernel turn_kernel(DType dtype = f32);
/// y[t] = the value loaded by the thread whose number differs in the bits of 5, for 64 threads.
kernel::Kernel partner_kernel(DType dtype = f32);

bool same_bits(const std::vector<float>& a, const std::vector<float>& b);
/// Returns lathe.cuh with a mistake instead of a text that it has.
std::string prelude_with(const std::string& text, const std::string& mistake);
/// Runs a kernel with buffers and dims.
using RunWith = std::function<void(std::span<const kernel::BoundBuffer>, std::span<const std::int64_t>)>;
/// Checks that a mistake in lathe.cuh changes the result of a kernel on the host, compared with the interpreter, or
/// makes its threads wait forever. `result` returns the result of a run.
void check_detected(const kernel::Kernel& kernel, const std::function<std::vector<float>(const RunWith&)>& result,
                    const char* text, const char* mistake);

}  // namespace lathe::test
