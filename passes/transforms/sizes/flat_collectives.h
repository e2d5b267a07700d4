#pragma once

#include "ir/tensor/graph.h"

namespace lathe::ir {

/// Rewrites collectives to the form that processes execute, on memory in the order of its addresses: all data that
/// they exchange is dense, the shards of processes follow each other, and the copies around them are ops of the
/// graph.
///
///   mesh_index {axis="data"}                        ->  the size mesh_index@data
///   all_gather %a[p, n] {dim=1, ranks=2}            ->  all_gather view %a[1, p*n] {dim=0}, as [2, p, n],
///                                                       permuted to [p, 2, n], as [p, 2*n]
///   reduce_scatter %a[p, 2*n] {dim=1, ranks=2}      ->  reduce_scatter {dim=0} of a copy [2, p*n]
///   all_to_all                                      ->  both
///   all_reduce %a, send_recv %a                     ->  of a dense %a
/// An axis with one process communicates nothing, and neither does a send_recv that goes all the way round.
Graph flat_collectives(Graph graph);

}  // namespace lathe::ir
