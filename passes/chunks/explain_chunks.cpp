#include "passes/chunks/explain_chunks.h"

#include <fmt/core.h>

#include "ir/tensor/op/op.h"
#include "passes/chunks/chunk_rows.h"

namespace lathe {

using namespace ir;

namespace {

std::string node(const Graph& graph, ValueId id) { return fmt::format("%{} {}", id.index, graph[id].op->name.value); }

std::string tell_chunks(const Graph& graph, const Readers& readers, const ChunkedRegion& found) {
  const Node& product = graph[found.region.product];
  const auto& columns = found.region.members.at(found.region.product).columns->result;
  const Dim &cut = product.type.shape[found.rows], &width = product.type.shape[columns->dim];
  const std::int64_t of_one = *product.type.shape.numel().value() / *width.value() / *cut.value(),
                     rows = (*cut.value() + found.chunks - 1) / found.chunks * of_one;
  std::string text = fmt::format("in {} chunks of {} rows, along {}\n", found.chunks, rows, cut.to_string()), joined,
              added;
  for (const auto& [id, member] : found.region.members) {
    if (!found.region.is_result(id, readers)) continue;
    std::string& list = member.rows.result ? joined : added;
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", node(graph, id), graph[id].type.to_string());
  }
  if (!joined.empty()) text += fmt::format("  joined: {}\n", joined);
  if (!added.empty()) text += fmt::format("  added up: {}\n", added);
  return text;
}

}  // namespace

std::string explain_row_chunks(const Graph& graph, const RowChunks& options) {
  const Readers readers(graph);
  std::string text;
  for (const ChunkedRegion& found : find_row_chunks(graph, options, true)) {
    const ValueId product = found.region.product;
    text += fmt::format("product at {}: {} ", graph[product].loc.place(), graph[product].type.to_string());
    if (found.region.holds())
      text += tell_chunks(graph, readers, found);
    else
      text += fmt::format("stays whole\n  {} ({} at {})\n", found.region.reason, node(graph, found.region.at),
                          graph[found.region.at].loc.place());
  }
  return text.empty() ? "this graph has no large product whose columns are only folded\n" : text;
}

}  // namespace lathe
