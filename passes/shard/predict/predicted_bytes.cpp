#include "passes/shard/predict/predicted_bytes.h"

#include <algorithm>

#include "passes/shard/shard.h"

namespace lathe::shard {

using ir::ExchangeKind;

std::int64_t messages(const Exchange& exchange) {
  const std::int64_t others = exchange.axis.ranks - 1;
  switch (exchange.kind) {
    case ExchangeKind::all_reduce: return 2 * others;
    case ExchangeKind::reduce_scatter:
    case ExchangeKind::all_gather:
    case ExchangeKind::all_to_all: return others;
    case ExchangeKind::send_recv: return std::min<std::int64_t>(1, others);
  }
  return 0;
}

std::int64_t parts_sent(const Exchange& exchange) {
  return messages(exchange) * (exchange.kind == ExchangeKind::send_recv ? exchange.axis.ranks : 1);
}

std::int64_t bytes_sent(const Exchange& exchange, const DimBindings& bindings, std::int64_t index) {
  const std::int64_t n = exchange.axis.ranks, elements = exchange.elements.evaluate(bindings);
  const std::int64_t chunk = (elements + n - 1) / n;
  const auto begin = [&](std::int64_t i) { return std::min(elements, i * chunk); };
  const std::int64_t own = begin(index + 1) - begin(index);
  const auto sent = [&] {
    switch (exchange.kind) {
      case ExchangeKind::all_reduce: return elements - own + (n - 1) * own;  // others' chunks, then the own to all
      case ExchangeKind::reduce_scatter:
      case ExchangeKind::all_gather:
      case ExchangeKind::all_to_all: return (n - 1) * own;
      case ExchangeKind::send_recv: return messages(exchange) * elements;
    }
    return std::int64_t{0};
  };
  return sent() * exchange.element_bytes;
}

SentBytes bytes_sent(const Sharded& sharded, std::int64_t process, const DimBindings& bindings) {
  SentBytes sent;
  for (const Exchange& each : sharded.exchanges)
    (each.elements.is(1) ? sent.scalars : sent.tensors) +=
        bytes_sent(each, bindings, sharded.mesh.index(process, sharded.mesh.find(each.axis.name)));
  return sent;
}

}  // namespace lathe::shard
