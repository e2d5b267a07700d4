#pragma once

#include <string>
#include <vector>

#include "passes/shard/shard.h"

namespace lathe::shard {

/// Explains for people why arguments are split. Each split argument has its dims and axes, the name that split them
/// and its location, and the first op on a short path there that ties the dim. Arguments that differ only in numbers
/// in their names, such as those of layers, share the lines of the first one. So do all arguments that only
/// ShardOptions shard. `graph` is the global graph that shard() split by `splits`.
///
///   %h.*.attn.c_attn.weight (12): f32[d_model=768, 3*d_model=2304]
///     dim 1 over model in 3 blocks: h of view at gpt.cpp:41, through contract at gpt.cpp:40
std::string explain_splits(const ir::Graph& graph, const Sharded& sharded, const std::vector<Split>& splits);

}  // namespace lathe::shard
