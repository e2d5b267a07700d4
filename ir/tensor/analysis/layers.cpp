#include "ir/tensor/analysis/layers.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "ir/tensor/op/op.h"
#include "ir/tensor/text/printer.h"

namespace lathe::ir {

namespace {

/// The values of one layer, consecutive in the list.
struct Block {
  std::string prefix;
  int layer = -1;  ///< -1: not in a layer
  bool gradient = false;
  std::size_t begin = 0, end = 0;
  std::vector<std::size_t> counted;  ///< excludes values without operands

  /// Returns whether `next` continues this layer. Values recomputed in a backward sweep do not have a gradient's
  /// location.
  bool takes(const Block& next) const {
    return prefix == next.prefix && layer == next.layer && (gradient == next.gradient || gradient);
  }
};

/// Splits the path of a value before and after its first number: "decoder.3.self" gives "decoder" and 3.
Block layer_of(const Node& node) {
  const std::string_view path = node.op->as<Argument>() ? std::string_view(node.name) : node.loc.scope();
  Block block;
  block.gradient = node.loc.gradient();
  constexpr std::size_t most_digits = 6;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('.', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    const bool number = !part.empty() && part.size() <= most_digits &&
                        std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c); });
    if (number && at > 0) {
      block.prefix = path.substr(0, at - 1);
      block.layer = std::stoi(std::string(part));
      return block;
    }
    at = end + 1;
  }
  return block;
}

class Finder {
 public:
  Finder(const Graph& graph, std::span<const ValueId> values) : graph_(graph), values_(values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      Block block = layer_of(graph[values[i]]);
      block.begin = i;
      if (blocks_.empty() || !blocks_.back().takes(block)) blocks_.push_back(block);
      blocks_.back().end = i + 1;
      if (!is_constant(values[i])) {
        position_[values[i].index] = {blocks_.size() - 1, blocks_.back().counted.size()};
        blocks_.back().counted.push_back(i);
      }
    }
  }

  std::vector<RepeatedLayers> run() const {
    std::vector<RepeatedLayers> found;
    for (std::size_t i = 0; i < blocks_.size();) {
      std::size_t next = i + 1;
      while (next < blocks_.size() && equal(blocks_[i], blocks_[next])) ++next;
      if (next - i > 1) {
        RepeatedLayers repeated{blocks_[i].begin,  blocks_[i].end,      blocks_[next - 1].end,
                                blocks_[i].prefix, blocks_[i].gradient, {}};
        for (std::size_t k = i; k < next; ++k) repeated.layers.push_back(blocks_[k].layer);
        found.push_back(std::move(repeated));
      }
      i = next;
    }
    return found;
  }

 private:
  bool is_constant(ValueId id) const { return graph_[id].operands.empty() && !graph_[id].op->as<Argument>(); }

  bool equal(const Block& a, const Block& b) const {
    if (a.layer < 0 || b.layer < 0 || a.prefix != b.prefix || a.gradient != b.gradient) return false;
    if (a.counted.empty() || a.counted.size() != b.counted.size()) return false;
    for (std::size_t i = 0; i < a.counted.size(); ++i)
      if (!same_node(a, b, i)) return false;
    return true;
  }

  bool same_node(const Block& a, const Block& b, std::size_t i) const {
    const Node &x = graph_[values_[a.counted[i]]], &y = graph_[values_[b.counted[i]]];
    if (x.op != y.op || x.operands.size() != y.operands.size()) return false;
    if (print_type(x.type, true) != print_type(y.type, true) || !same_attributes(x.attrs, y.attrs)) return false;
    for (std::size_t k = 0; k < x.operands.size(); ++k) {
      const ValueId p = x.operands[k], q = y.operands[k];
      if (is_constant(p) != is_constant(q)) return false;
      if (is_constant(p) && p != q && !same_attributes(graph_[p].attrs, graph_[q].attrs)) return false;
      if (position(a, p) != position(b, q)) return false;
    }
    return true;
  }

  /// Random streams differ intentionally.
  static bool same_attributes(const Attributes& a, const Attributes& b) {
    return std::equal(a.entries().begin(), a.entries().end(), b.entries().begin(), b.entries().end(),
                      [](const auto& x, const auto& y) {
                        return x.first == y.first &&
                               (x.first == "stream" || print_whole(x.second) == print_whole(y.second));
                      });
  }

  /// Returns the position of an operand in the layer; -1 if outside.
  std::ptrdiff_t position(const Block& block, ValueId operand) const {
    const auto at = position_.find(operand.index);
    if (at == position_.end() || at->second.first != static_cast<std::size_t>(&block - blocks_.data())) return -1;
    return static_cast<std::ptrdiff_t>(at->second.second);
  }

  const Graph& graph_;
  std::span<const ValueId> values_;
  std::unordered_map<std::int32_t, std::pair<std::size_t, std::size_t>> position_;  ///< block, position in it
  std::vector<Block> blocks_;
};

}  // namespace

std::vector<RepeatedLayers> repeated_layers(const Graph& graph, std::span<const ValueId> values) {
  return Finder(graph, values).run();
}

std::string to_string(const RepeatedLayers& repeated) {
  return fmt::format("{0}.{1} .. {0}.{2}", repeated.prefix, repeated.layers.front(), repeated.layers.back());
}

}  // namespace lathe::ir
