#pragma once

#include <cstdint>

namespace lathe::ir {

/// The collectives along a mesh axis, except mesh_index (ir/ops/collectives.h).
enum class CollectiveKind : std::uint8_t {
  all_reduce,      ///< chunks to their ranks, reduced there, results back
  reduce_scatter,  ///< chunks to their ranks, reduced there
  all_gather,
  all_to_all,
  send_recv,  ///< shift: to the rank at a fixed distance, from the rank at the same distance in the other direction
};

}  // namespace lathe::ir
