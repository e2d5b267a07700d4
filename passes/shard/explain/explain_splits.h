#pragma once

#include <string>
#include <vector>

#include "passes/shard/shard.h"

namespace lathe::shard {

/// Why arguments are split, for people: for each that is, its dims and axes, the name that split them and where it
/// stands, and the first op on a short way there that ties the dim. Arguments alike but for numbers in their names,
/// as those of layers are, share their lines, which are those of the first; and so do all that only ShardOptions
/// divide. `graph` is the whole one that shard() divided by `splits`.
///
///   %h.*.attn.c_attn.weight (12): f32[d_model=768, 3*d_model=2304]
///     dim 1 over model in 3 blocks: h of view at gpt.cpp:41, through contract at gpt.cpp:40
std::string explain_splits(const ir::Graph& graph, const Sharded& sharded, const std::vector<Split>& splits);

}  // namespace lathe::shard
