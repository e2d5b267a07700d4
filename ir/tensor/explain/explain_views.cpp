#include <fmt/core.h>

#include <algorithm>

#include "ir/tensor/explain/explain_detail.h"

namespace lathe::ir::detail {

std::string joined(const std::vector<std::string>& items, std::string_view between) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) text += (i == 0 ? "" : std::string(between)) + items[i];
  return text;
}

std::string listed(std::vector<std::string> items) {
  if (items.size() < 2) return joined(items, "");
  const std::string last = std::move(items.back());
  items.pop_back();
  return joined(items, ", ") + " and " + last;
}

namespace {

// ---- reshaping in row-major order

/// A run of dims before and after that holds the same elements.
struct Regrouping {
  std::vector<Dim> before, after;
};

/// Splits both shapes into the shortest runs with equal products.
std::vector<Regrouping> regroup(const Shape& from, const Shape& to) {
  std::vector<Regrouping> runs;
  int i = 0, j = 0;
  while (i < from.rank() || j < to.rank()) {
    Regrouping run;
    Dim before(1), after(1);
    const auto take_before = [&] {
      before = before * from[i].unnamed();
      run.before.push_back(from[i++]);
    };
    const auto take_after = [&] {
      after = after * to[j].unnamed();
      run.after.push_back(to[j++]);
    };
    if (i < from.rank() && from[i].is(1) && (j >= to.rank() || !to[j].is(1))) {
      take_before();
    } else if (j < to.rank() && to[j].is(1) && (i >= from.rank() || !from[i].is(1))) {
      take_after();
    } else {
      if (i < from.rank()) take_before();
      if (j < to.rank()) take_after();
      while (before != after && (i < from.rank() || j < to.rank())) {
        const bool grow_after = before.divided_by(after).has_value() ? j < to.rank() : i >= from.rank();
        grow_after ? take_after() : take_before();
      }
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

std::string product(const std::vector<Dim>& dims) {
  std::vector<std::string> texts;
  for (const Dim& dim : dims) texts.push_back(dim.to_string());
  return joined(texts, " x ");
}

}  // namespace

std::string regrouping_text(const Shape& from, const Shape& to) {
  std::vector<std::string> parts;
  for (const Regrouping& run : regroup(from, to)) {
    const std::size_t before = run.before.size(), after = run.after.size();
    if (before == 1 && after == 1) {
      if (run.before[0].to_string() != run.after[0].to_string())
        parts.push_back(fmt::format("renames {} to {}", run.before[0].to_string(), run.after[0].to_string()));
    } else if (before == 0) {
      parts.push_back("inserts a dim of size 1");
    } else if (after == 0) {
      parts.push_back("removes a dim of size 1");
    } else {
      const std::string_view verb = before == 1 ? "splits" : after == 1 ? "merges" : "regroups";
      parts.push_back(fmt::format("{} {} into {}", verb, product(run.before), product(run.after)));
    }
  }
  return parts.empty() ? "same shape" : joined(parts, "; ");
}

namespace {

// ---- views, by their index maps

/// Describes the dims that a permutation moves; empty if the map is not a permutation.
std::string permutation_text(const IndexMap& map, const Shape& from, const Shape& to) {
  if (static_cast<int>(map.components.size()) != to.rank()) return {};
  std::vector<std::string> moved;
  std::vector<bool> seen(map.components.size(), false);
  for (int i = 0; i < from.rank(); ++i) {
    const auto& c = map.components[i];
    if (!c.is_plain() || from[i] != to[c.dim]) return {};
    if (seen[c.dim]) return {};
    seen[c.dim] = true;
    if (c.dim != i) moved.push_back(from[i].to_string());
  }
  if (moved.empty()) return "keeps the order of the dims";
  if (moved.size() == 2) return "swaps " + listed(moved);
  return fmt::format("permutes the dims to {}", to.to_string());
}

std::string cut_text(const IndexMap& map, const Shape& from, const Shape& to) {
  std::vector<std::string> parts;
  for (int i = 0; i < from.rank(); ++i) {
    const auto& c = map.components[i];
    const std::string dim = from[i].to_string();
    if (c.dim < 0) {
      if (!from[i].is(1)) parts.push_back(fmt::format("takes index {} of {}", c.offset.to_string(), dim));
      continue;
    }
    const std::string kept = to[c.dim].to_string();
    if (!c.more.empty()) {
      parts.push_back(fmt::format("{} windows of {} along {}", kept, to[c.more[0].dim].to_string(), dim));
      if (c.scale != 1) parts.back() += fmt::format(", step {}", c.scale);
      if (c.more[0].scale != 1) parts.back() += fmt::format(", dilation {}", c.more[0].scale);
    } else if (c.scale != 1)
      parts.push_back(fmt::format("takes {} of {} from index {}, step {}", kept, dim, c.offset.to_string(), c.scale));
    else if (!c.offset.is(0) || from[i] != to[c.dim])
      parts.push_back(fmt::format("takes {} of {} from index {}", kept, dim, c.offset.to_string()));
  }
  return joined(parts, "; ");
}

std::string repeat_text(const IndexMap& map, const Shape& to) {
  std::vector<std::string> repeated;
  for (int d = 0; d < to.rank(); ++d) {
    const bool read = std::any_of(map.components.begin(), map.components.end(), [&](const IndexMap::Component& c) {
      bool reads = false;
      c.each_term([&](int dim, std::int64_t) { reads = reads || dim == d; });
      return reads;
    });
    if (!read && !to[d].is(1)) repeated.push_back(to[d].to_string());
  }
  return repeated.empty() ? std::string() : fmt::format("repeats along {} with stride 0", listed(repeated));
}

}  // namespace

std::string view_text(const Graph& graph, const Node& node, const View& view) {
  const Shape &from = graph[node.operands[0]].type.shape, &to = node.type.shape;
  const IndexMap map = view.map(graph, node);
  if (map.reshape || map.components.size() != static_cast<std::size_t>(from.rank()))
    return regrouping_text(from, to) + std::string(no_copy);
  if (const std::string moved = permutation_text(map, from, to); !moved.empty()) return moved + std::string(no_copy);
  std::vector<std::string> parts;
  for (std::string part : {cut_text(map, from, to), repeat_text(map, to)})
    if (!part.empty()) parts.push_back(std::move(part));
  if (parts.empty()) parts.push_back(regrouping_text(from, to));
  return joined(parts, "; ") + std::string(no_copy);
}

}  // namespace lathe::ir::detail
