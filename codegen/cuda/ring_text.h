#pragma once

#include <string>
#include <vector>

#include "ir/kernel/kernel.h"

namespace lathe::cuda {

/// The lines that a ring begins with, and those between the body as it is for the threads that fill and for the
/// users.
struct RingText {
  std::vector<std::string> before_fill, before_use;
};

/// Of a block of `threads`. Where one of a whole warp group fills for several groups that use, registers go from that
/// group to these (setmaxnreg of sm_90a): each multiprocessor has 512 for every fourth part of its warps' lanes.
/// `tells`: users tell those that fill something.
RingText ring_text(const kernel::Ring& ring, int threads, bool copied_by_all, bool tells);

}  // namespace lathe::cuda
