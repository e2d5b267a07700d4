#pragma once

#include <cstdint>

#include "ir/support/dim.h"
#include "ir/tensor/mesh/sent_bytes.h"

namespace lathe::shard {

using ir::SentBytes;

struct Exchange;
struct Sharded;

/// How many messages a process sends for an exchange: one to every other one of its axis, to each twice for an
/// all_reduce, which scatters and gathers; one in all for a send_recv.
std::int64_t messages(const Exchange& exchange);
/// How many parts of n, one for each process of the axis, of the bytes of an exchange a process sends, if they
/// divide.
std::int64_t parts_sent(const Exchange& exchange);

/// What the process at `index` along the axis sends for an exchange: of an all_reduce 2 (n - 1) / n of its bytes,
/// half of that of a gather or scatter, all of a send_recv. An all_reduce of elements that do not divide over the n
/// processes is done in chunks of ceil(elements / n): the first process, which sends most, has a whole one.
/// `bindings` are dims of a process.
std::int64_t bytes_sent(const Exchange& exchange, const DimBindings& bindings = {}, std::int64_t index = 0);

/// What a process of the mesh sends for a run of its graph: what Ranks::sent() counts (runtime/ranks/ranks.h).
SentBytes bytes_sent(const Sharded& sharded, std::int64_t process, const DimBindings& bindings = {});

}  // namespace lathe::shard
