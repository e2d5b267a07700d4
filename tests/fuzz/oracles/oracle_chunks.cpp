#include <fmt/core.h>

#include "ir/ops/functional/functional_composites.h"
#include "passes/autodiff/autodiff.h"
#include "passes/chunks/chunk_rows.h"
#include "passes/compile/compilation.h"
#include "passes/pipeline/pipeline.h"
#include "passes/transforms/rebuild.h"
#include "passes/transforms/sizes/known_sizes.h"
#include "tests/fuzz/oracles/oracles.h"
#include "tests/fuzz/reference.h"

namespace lathe::fuzz {

using namespace ir;
using test::Outcome;
using test::outcome;

namespace {

constexpr std::int64_t columns = 7, least_rows = 4;

/// A loss of logits, row by row.
Value head_loss(const Value& logits, unsigned kind) {
  switch (kind % 4) {
    case 0: return sum(square(logsumexp(logits, -1)));
    case 1: return sum(mul(log_softmax(logits, -1), iota(logits.builder(), {columns}, 0, logits.dtype())));
    case 2: return sum(square(sub(tanh(logits), max(logits, {-1}, true))));
    default: return mean(mul(softmax(mul(tanh(logits), 3.0), -1), logits));
  }
}

/// Returns the graph at these sizes with a loss of one of its outputs after a matmul with a table, and the gradients
/// of that loss, so that rows by columns are only reduced. Returns nothing if no output has enough rows.
std::optional<ir::Graph> with_head(const Case& from, const DimBindings& sizes) {
  const ir::Graph known = with_sizes(from.graph, sizes);
  GraphBuilder builder(known.name);
  Rebuilder to(builder, known);
  to.copy_rest();
  to.close();
  for (const Output& output : known.outputs) {
    const Value x = to[output.value];
    const std::int64_t all = x.shape().numel().value().value_or(0),
                       depth = x.rank() > 1 ? x.shape()[x.rank() - 1].value().value_or(0) : 0;
    if (!is_float(x.dtype()) || depth == 0 || all / depth < least_rows) continue;
    const Shape shape{columns, depth};
    const Value table = sin(add(iota(builder, shape, 0, x.dtype()), mul(iota(builder, shape, 1, x.dtype()), 0.7)));
    const Value loss = head_loss(linear(x, table), from.seed);
    const Value wrt[] = {x, table};
    const Gradients found = gradients(builder, loss, std::nullopt, wrt);
    builder.output("head.loss", loss);
    builder.output("head.x", found[0]);
    builder.output("head.table", found[1]);
    return builder.finish();
  }
  return std::nullopt;
}

}  // namespace

Complaint in_chunks(const Case& from) {
  for (const DimBindings& sizes : from.sizes) {
    std::optional<ir::Graph> graph;
    const Outcome made = outcome([&] { return graph = with_head(from, sizes), Tensors{}; });
    if (made.label.starts_with("InternalError")) return made.label;
    if (!graph) continue;
    const ir::Graph whole = run_pipeline(*graph, default_pipeline({.on = false})).graph;
    Reference reference({from.seed, whole, {{}}}, {}, false);
    for (const std::int64_t rows : {1, 2}) {
      const ir::Graph after = chunk_rows(whole, {.least_rows = rows, .least_saved = 0});
      const Outcome found = outcome([&] { return interpret(after, reference.arguments(), {.round = false}); });
      if (const auto wrong = reference.complaint(found))
        return fmt::format("chunks of {} rows, {}: {}", rows, test::to_string(sizes), *wrong);
    }
  }
  return std::nullopt;
}

}  // namespace lathe::fuzz
