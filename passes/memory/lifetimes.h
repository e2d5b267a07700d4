#pragma once

#include <vector>

#include "passes/program/program.h"

namespace lathe {

/// The launches during which a buffer of the arena must keep its contents.
struct Lifetime {
  int buffer, first, last;
};

/// Returns whether the buffer is a temporary or scratch.
bool is_in_arena(const ProgramBuffer& buffer);

/// Returns the lifetime of every temporary and scratch that a launch or a collective accesses: from the first launch
/// that accesses it to the last one. A use of a slice is one of the buffer that it is a part of. A temporary is live
/// during all launches of a loop if
/// - it is also used outside of the loop,
/// - slices of it are accessed by the loop, or
/// - an iteration may read what the previous one wrote: the first access of the body is not by a launch of the body
///   itself, outside of loops in it, that only writes.
/// The kernels that a region consists of must write all of a buffer before they read it, unless the first one that
/// accesses it declares a read, or a partial write.
std::vector<Lifetime> lifetimes(const Program& program);

}  // namespace lathe
