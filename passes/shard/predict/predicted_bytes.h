#pragma once

#include <cstdint>

#include "ir/support/dim.h"
#include "ir/tensor/mesh/sent_bytes.h"

namespace lathe::shard {

using ir::SentBytes;

struct Collective;
struct Sharded;

/// Returns how many messages a process sends for a collective: one to every other process of its axis; two to each
/// for an all_reduce, which scatters and gathers; one in total for a send_recv.
std::int64_t messages(const Collective& collective);
/// Returns how many n-ths of the bytes of a collective over n processes a process sends, if they divide.
std::int64_t parts_sent(const Collective& collective);

/// Returns the bytes that the process at `index` along the axis sends for a collective: 2 (n - 1) / n of the bytes of
/// an all_reduce, half of that for a gather or scatter, all bytes of a send_recv. An all_reduce whose elements do not
/// divide over the n processes has chunks of ceil(elements / n); the first process, which sends most, has a whole
/// chunk. `bindings` are local dims.
std::int64_t bytes_sent(const Collective& collective, const DimBindings& bindings = {}, std::int64_t index = 0);

/// Returns the bytes that a process of the mesh sends for a run of its graph, as counted by Ranks::sent()
/// (runtime/ranks/ranks.h).
SentBytes bytes_sent(const Sharded& sharded, std::int64_t process, const DimBindings& bindings = {});

}  // namespace lathe::shard
