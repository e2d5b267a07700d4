#include "passes/shard/predict/predicted_bytes.h"

#include <algorithm>

#include "passes/shard/shard.h"

namespace lathe::shard {

using ir::CollectiveKind;

std::int64_t messages(const Collective& collective) {
  const std::int64_t others = collective.axis.ranks - 1;
  switch (collective.kind) {
    case CollectiveKind::all_reduce: return 2 * others;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::all_to_all: return others;
    case CollectiveKind::send_recv: return std::min<std::int64_t>(1, others);
  }
  return 0;
}

std::int64_t parts_sent(const Collective& collective) {
  return messages(collective) * (collective.kind == CollectiveKind::send_recv ? collective.axis.ranks : 1);
}

std::int64_t bytes_sent(const Collective& collective, const DimBindings& bindings, std::int64_t index) {
  const std::int64_t n = collective.axis.ranks, elements = collective.elements.evaluate(bindings);
  const std::int64_t chunk = (elements + n - 1) / n;
  const auto begin = [&](std::int64_t i) { return std::min(elements, i * chunk); };
  const std::int64_t own = begin(index + 1) - begin(index);
  const auto sent = [&] {
    switch (collective.kind) {
      case CollectiveKind::all_reduce: return elements - own + (n - 1) * own;  // others' chunks, then the own to all
      case CollectiveKind::reduce_scatter:
      case CollectiveKind::all_gather:
      case CollectiveKind::all_to_all: return (n - 1) * own;
      case CollectiveKind::send_recv: return messages(collective) * elements;
    }
    return std::int64_t{0};
  };
  return sent() * collective.element_bytes;
}

SentBytes bytes_sent(const Sharded& sharded, std::int64_t process, const DimBindings& bindings) {
  SentBytes sent;
  for (const Collective& each : sharded.collectives)
    (each.elements.is(1) ? sent.scalars : sent.tensors) +=
        bytes_sent(each, bindings, sharded.mesh.index(process, sharded.mesh.find(each.axis.name)));
  return sent;
}

}  // namespace lathe::shard
