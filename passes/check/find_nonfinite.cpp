#include "passes/check/find_nonfinite.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops/composites/composites.h"
#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/support/error.h"
#include "ir/support/tensors/complex_elements.h"
#include "ir/support/visible.h"
#include "ir/tensor/node_map.h"
#include "ir/tensor/text/printer.h"
#include "passes/check/results.h"

namespace lathe::ir {

namespace {

/// A count of NaNs and infinities in one i64: NaNs count in its upper half.
constexpr std::int64_t one_nan = std::int64_t{1} << 32;

struct Counts {
  std::int64_t nan = 0, infinite = 0;
};

bool can_be_infinite(DType dtype) { return is_float(dtype) || is_complex(dtype); }

/// Views have the elements of their operand, except those that select some.
bool has_elements_of_operand(const Node& node) {
  if (node.op == &ops::reshape || node.op == &ops::contiguous) return true;
  return node.op->as<View>() && node.op != &ops::slice && node.op != &ops::diagonal;
}

Value counts_of(GraphBuilder& builder, ValueId id) {
  Value value(builder, id);
  if (is_complex(value.dtype())) value = view_as_real(contiguous(value));
  const Value is_finite = lt(abs(value), std::numeric_limits<double>::infinity());
  const Value is_nan = ne(value, value);
  const Value one = constant(builder, std::int64_t{1}, i64), nan = constant(builder, one_nan, i64);
  return sum(where(is_finite, constant(builder, std::int64_t{0}, i64), where(is_nan, nan, one)));
}

/// Returns the graph with the counts of each value as its only outputs.
Graph counting_graph(Graph graph, const std::vector<ValueId>& counted) {
  graph.outputs.clear();
  graph.updates.clear();
  auto builder = std::make_shared<GraphBuilder>(std::move(graph));
  for (const ValueId id : counted) builder->output(value_name(id), counts_of(*builder, id));
  return builder->finish();
}

std::vector<ValueId> countable(const Graph& graph) {
  std::vector<ValueId> values;
  for (const ValueId id : all_values(graph))
    if (can_be_infinite(graph[id].type.dtype) && !has_elements_of_operand(graph[id])) values.push_back(id);
  return values;
}

bool fills_with_infinity(const Node& node) {
  return node.op == &ops::masked_fill && !std::isfinite(node.attrs.get<Number>("value").real());
}

class Search {
 public:
  Search(const Graph& graph, const RunGraph& run) : graph_(graph), counts_(graph), meant_(graph, false) {
    const std::vector<ValueId> counted = countable(graph);
    const Tensors found = run(counting_graph(graph, counted));
    for (const ValueId id : counted) {
      const std::int64_t both = found.at(value_name(id)).get_int(0);
      counts_[id] = {.nan = both / one_nan, .infinite = both % one_nan};
    }
    for (const ValueId id : all_values(graph))
      if (has_elements_of_operand(graph[id])) counts_[id] = counts_[graph[id].operands[0]];
    find_meant();
  }

  std::optional<NonFinite> result() const {
    NonFinite found;
    NodeMap<bool> leads(graph_, false);  // to a result that is not finite, through values that are not finite
    for (const Output& result : named_results(graph_)) {
      const Counts& counts = counts_[result.value];
      if (counts.nan == 0 && counts.infinite == 0) continue;
      found.results.push_back({result.name, counts.nan, counts.infinite});
      leads[result.value] = true;
    }
    if (found.results.empty()) return std::nullopt;
    for (const ValueId id : reversed_values(graph_)) {
      if (!leads[id]) continue;
      bool is_source = true;
      for (const ValueId operand : graph_[id].operands) {
        const bool explains = is_bad(id) ? is_bad(operand) : meant_[operand] && counts_[operand].infinite > 0;
        if (!explains) continue;
        leads[operand] = true;
        is_source = false;
      }
      if (is_source) (is_bad(id) ? found.origin : found.on_purpose) = id;
    }
    if (found.origin) found.on_purpose.reset();
    return found;
  }

 private:
  /// Marks values whose infinities are made on purpose, and those that have them from an operand.
  void find_meant() {
    NodeMap<bool> constant(graph_, false);
    for (const ValueId id : all_values(graph_)) {
      const Node& node = graph_[id];
      const bool argument = node.op->as<Argument>() != nullptr;
      constant[id] = !argument && std::ranges::all_of(node.operands, [&](ValueId o) { return constant[o]; });
      const auto any_operand = [&](const auto& holds) { return std::ranges::any_of(node.operands, holds); };
      meant_[id] = !any_operand([&](ValueId o) { return is_bad(o); }) &&
                   (argument || constant[id] || fills_with_infinity(node) ||
                    any_operand([&](ValueId o) { return meant_[o] && counts_[o].infinite > 0; }));
    }
  }

  bool is_bad(ValueId id) const { return counts_[id].nan > 0 || (counts_[id].infinite > 0 && !meant_[id]); }

  const Graph& graph_;
  NodeMap<Counts> counts_;
  NodeMap<bool> meant_;
};

std::string counts_text(std::int64_t nan, std::int64_t infinite) {
  std::vector<std::string> parts;
  if (nan > 0) parts.push_back(fmt::format("{} NaN", nan));
  if (infinite > 0) parts.push_back(fmt::format("{} infinite", infinite));
  return fmt::format("{}", fmt::join(parts, " and "));
}

}  // namespace

ElementRange element_range(const HostTensor& tensor) {
  ElementRange range{.elements = tensor.numel()};
  bool any = false;
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    const std::complex<double> element =
        is_complex(tensor.dtype()) ? get_complex(tensor, i) : std::complex<double>(tensor.get(i));
    const double parts[] = {element.real(), element.imag()};
    const int count = is_complex(tensor.dtype()) ? 2 : 1;
    const bool nan = std::isnan(parts[0]) || std::isnan(parts[1]);
    const bool finite = std::isfinite(parts[0]) && std::isfinite(parts[1]);
    if (!finite) {
      if (range.is_finite())
        range.first = fmt::format("{}{}", nan ? "nan" : fmt::format("{}", std::isinf(parts[0]) ? parts[0] : parts[1]),
                                  tensor.rank() == 0 ? "" : " at " + shape_to_string(position_of(tensor.shape(), i)));
      ++(nan ? range.nan : range.infinite);
      continue;
    }
    for (int part = 0; part < count; ++part) {
      range.lowest = any ? std::min(range.lowest, parts[part]) : parts[part];
      range.highest = any ? std::max(range.highest, parts[part]) : parts[part];
      any = true;
    }
  }
  return range;
}

std::string to_string(const ElementRange& range) {
  const std::string finite = fmt::format("{:.6g} .. {:.6g}", range.lowest, range.highest);
  if (range.elements == 0) return "no elements";
  if (range.is_finite()) return finite;
  const bool others = range.nan + range.infinite < range.elements;
  return fmt::format("{} of {} element{}{}; the first is {}", counts_text(range.nan, range.infinite), range.elements,
                     range.elements == 1 ? "" : "s", others ? ", the others " + finite : "", range.first);
}

std::optional<NonFinite> count_nonfinite(const Graph& graph, const RunGraph& run) {
  return Search(graph, run).result();
}

void measure_nonfinite(const Graph& graph, const RunGraph& run, ValueId origin, NonFinite& found) {
  std::vector<ValueId> values{origin};
  for (const ValueId operand : graph[origin].operands)
    if (std::ranges::find(values, operand) == values.end()) values.push_back(operand);
  const Tensors results = run(only_values(graph, values));
  found.range = element_range(results.at(value_name(origin)));
  for (const ValueId operand : graph[origin].operands)
    found.operands.push_back(element_range(results.at(value_name(operand))));
}

std::optional<NonFinite> find_nonfinite(const Graph& graph, const RunGraph& run) {
  std::optional<NonFinite> found = count_nonfinite(graph, run);
  if (found && found->origin) measure_nonfinite(graph, run, *found->origin, *found);
  return found;
}

UserError nonfinite_error(const std::string& description) {
  const std::size_t line = std::min(description.find("\n  "), description.size());
  return UserError(description.substr(0, line), "not_finite",
                   description.size() > line ? description.substr(line + 3) : "");
}

std::string to_string(const std::optional<NonFinite>& found, const Graph& graph, const std::string& where) {
  if (found) return to_string(*found, graph, where);
  return "results are not finite, but they are if every value is stored\n"
         "  lathe verify compares the compiled code with the interpreter on the same arguments";
}

std::string to_string(const NonFinite& found, const Graph& graph, const std::string& where) {
  constexpr std::size_t most = 6;
  std::vector<std::string> results;
  for (const NonFinite::Result& result : found.results)
    if (results.size() < most)
      results.push_back(fmt::format("{} ({})", visible(result.name), counts_text(result.nan, result.infinite)));
  std::string text = fmt::format("not finite{}{}: {}", where.empty() ? "" : " ", where, fmt::join(results, ", "));
  if (found.results.size() > most) text += fmt::format(" and {} more", found.results.size() - most);
  const auto line = [&](ValueId id) { return print_node(graph, id, {.locations = false}); };
  if (!found.origin) {
    if (found.on_purpose)
      text += fmt::format("\n  the infinities are made on purpose at {}:\n    {}",
                          graph[*found.on_purpose].loc.to_string(), line(*found.on_purpose));
    return text;
  }
  const Node& node = graph[*found.origin];
  if (node.op->as<Argument>())
    return text + fmt::format("\n  the {} {} holds them before the run: {}", node.op->name.value,
                              value_label(graph, *found.origin), to_string(found.range));
  const bool finite = std::ranges::all_of(found.operands, &ElementRange::is_finite);
  text += fmt::format("\n  the first op {}, at {}:\n    {}",
                      finite ? "whose result is not finite although its operands are"
                             : "that makes NaNs, from infinities that are made on purpose",
                      node.loc.to_string(), line(*found.origin));
  text += fmt::format("\n    result: {}", to_string(found.range));
  for (std::size_t i = 0; i < found.operands.size(); ++i)
    text += fmt::format("\n    operand {}: {}", value_label(graph, node.operands[i]), to_string(found.operands[i]));
  return text;
}

}  // namespace lathe::ir
