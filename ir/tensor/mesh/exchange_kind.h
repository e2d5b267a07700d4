#pragma once

#include <cstdint>

namespace lathe::ir {

/// What processes exchange along an axis of their mesh: the collectives but mesh_index (ir/ops/collectives.h).
enum class ExchangeKind : std::uint8_t {
  all_reduce,      ///< pieces to their processes, the fold there, the results back
  reduce_scatter,  ///< pieces to their processes, the fold there
  all_gather,
  all_to_all,
  send_recv,  ///< to the process some places further, from the one as many back
};

}  // namespace lathe::ir
