#pragma once

#include <string_view>
#include <vector>

#include "passes/shard/ring/find_rings.h"

namespace lathe::shard {

/// A graph with ring attentions.
struct RingGraph {
  ir::Graph graph;
  int rings = 0;
  std::vector<GatheredAttention> gathered;  ///< attentions that are unchanged, and why
};

/// Replaces gathers of keys and values by ring attention (Liu, Zaharia and Abbeel 2023): each process of an axis
/// sends its block of keys and values to the next one and multiplies the block that it currently has. Of n processes,
/// process r has in step s the keys of process r - s. Each block is an attention of its own, and fused as one:
///
///   %K = all_gather %k                        %k1 = send_recv %k,  %k2 = send_recv %k1, ..
///   %S = q K^T, masked                        of each block: its scores Ss, ms = max Ss, es = exp(Ss - ms),
///   %p = softmax %S                       ->  ls = sum es, os = es vs; they are added up as they come, with
///   %o = p V                                  m = max(m, ms), l = l exp(m' - m) + ls exp(ms - m), o likewise;
///                                             o / l in the end
///
/// The backward pass, which has m and l, is a sum over blocks. Keys and values go around again, and the gradients of
/// a block go with it, through all other processes and back to its own:
///
///   %dk = reduce_scatter (dS^T q)         ->  block 1 begins %g1; %g2 = send_recv %g1 + block 2; ..;
///                                             back at its process + block 0
///
/// A row's blocks are added in the order in which they arrive, so that the same mesh always gives the same bits. Rows
/// that see nothing of a block have weight 0 there. Partial sums narrower than f32 are added and sent in f32. The
/// graph grows with the number of processes of the axis. An attention that cannot use a ring is unchanged.
RingGraph ring_attention(const ir::Graph& graph);

/// Returns the purpose of a ring's send_recv, in words.
std::string_view reason_of_send(const ir::Node& send_recv);

}  // namespace lathe::shard
