#pragma once

#include "passes/program/program.h"

namespace lathe {

/// Sets the earliest start and the deadline of each collective, and sorts the collectives by start. A collective may
/// start once its inputs are written and its output memory is unused. It must be done before a launch reads its
/// outputs or overwrites its inputs. On entry, `start` is the position of the collective in launch order.
///
/// Collectives neither start nor have their deadline inside a loop of the program. On entry, `start` is not inside a
/// loop either.
///
/// Where sizes are known, the number of bytes in flight bounds how early all-gathers start and how late
/// reduce-scatters finish (ir/tensor/mesh/collective_window.h). A send_recv starts with the region that first reads
/// the output of the previous one.
///
/// Reductions of the same kind and axis with known sizes are merged into buckets of up to `bucket_bytes`, if the last
/// input is ready before the first output is needed. So are all-gathers that only the next run reads. The result is
/// the same on every process, because their programs are equal.
void order_collectives(Program& program, std::int64_t bucket_bytes);

}  // namespace lathe
