#include "passes/shard/predict/predicted_bytes.h"

#include <algorithm>

#include "ir/ops/primitives/primitives.h"
#include "passes/shard/shard.h"

namespace lathe::shard {

int phases(const Exchange& exchange) { return exchange.op == ir::ops::all_reduce.name.value ? 2 : 1; }

std::int64_t bytes_sent(const Exchange& exchange, const DimBindings& bindings, std::int64_t index) {
  const std::int64_t n = exchange.axis.ranks, elements = exchange.elements.evaluate(bindings);
  const std::int64_t chunk = (elements + n - 1) / n;
  const auto begin = [&](std::int64_t i) { return std::min(elements, i * chunk); };
  const std::int64_t own = begin(index + 1) - begin(index);
  // Others' chunks to them, then the own one to all.
  const std::int64_t sent = phases(exchange) == 2 ? elements - own + (n - 1) * own : (n - 1) * own;
  return sent * exchange.element_bytes;
}

SentBytes bytes_sent(const Sharded& sharded, std::int64_t process, const DimBindings& bindings) {
  SentBytes sent;
  for (const Exchange& each : sharded.exchanges)
    (each.elements.is(1) ? sent.scalars : sent.tensors) +=
        bytes_sent(each, bindings, sharded.mesh.index(process, sharded.mesh.find(each.axis.name)));
  return sent;
}

}  // namespace lathe::shard
