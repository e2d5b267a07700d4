#pragma once

#include <string>

#include "passes/program/program.h"

namespace lathe {

/// Finds when each exchange may begin (its values are written, nobody uses the memory of its results any more) and
/// must be over (a launch reads a result or writes over a value), and brings the exchanges into the order in which
/// they may begin. Gathers run ahead of their readers, and scatters behind, by a bounded number of bytes, where their
/// sizes are known (ir/tensor/mesh/exchange_window.h); a send_recv goes when the region runs that first reads what
/// the one before it has brought. On the way in, `start` is where in the order of launches the collective stands.
/// Sums of one kind and axis whose sizes are known go together, as far as they are `bucket_bytes` in all, and the
/// last of their values is there before the first of their results is wanted; so do gathers of what only the next run
/// reads. The same on every process, since their programs are equal.
void order_exchanges(Program& program, std::int64_t bucket_bytes);

/// The exchanges of a program for a reader, in their order: the launches while which each may be on its way, and its
/// values. A line says so where there are none.
///
///   exchange 0: all_reduce along data=4, during launches 12..17
///     %31 all_reduce : f32[64]  step.cpp:14
///     %29 all_reduce : f32[4096]  step.cpp:12
std::string print_exchanges(const Program& program);

}  // namespace lathe
