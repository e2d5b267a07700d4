#pragma once

#include <string>

#include "passes/lowering/program/program.h"

namespace lathe {

/// The exchanges of a program for a reader, in the order in which every process carries them out: the launches while
/// which each may be on its way, and its values. A line says so where there are none.
///
///   exchange 0: all_reduce along data=4, during launches 12..17
///     %31 all_reduce : f32[64]  step.cpp:14
///     %29 all_reduce : f32[4096]  step.cpp:12
std::string print_exchanges(const Program& program);

}  // namespace lathe
