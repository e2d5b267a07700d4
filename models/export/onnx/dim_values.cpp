#include "models/export/onnx/dim_values.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/ops/primitives/primitives.h"
#include "ir/support/error.h"
#include "ir/tensor/loop_views.h"

namespace lathe::onnx {

namespace {

/// Calls f(size) for the sizes of a node's type and attributes.
template <class F>
void each_size(const ir::Node& node, const F& f) {
  for (const Dim& size : node.type.shape) f(size);
  for (const auto& [name, value] : node.attrs.entries()) {
    if (const auto* size = std::get_if<Dim>(&value)) f(*size);
    if (const auto* shape = std::get_if<Shape>(&value))
      for (const Dim& size : *shape) f(size);
  }
}

/// If a size is `scale * unknown + rest` with a known rest, returns the scale and the rest.
template <class Knows>
std::optional<std::pair<std::int64_t, Dim>> linear_in(const Dim& size, const std::string& unknown,
                                                      const Knows& knows) {
  std::int64_t scale = 0;
  for (const Dim::Term& term : size.terms())
    if (term.monomial == Dim::Monomial{{unknown, 1}}) scale = term.coefficient;
  if (scale == 0) return std::nullopt;
  Dim rest = size - Dim(unknown) * Dim(scale);
  if (!knows(rest)) return std::nullopt;
  return std::pair(scale, rest.unnamed());
}

}  // namespace

DimValues::DimValues(ModelBuilder& to, const ir::Graph& graph) : to_(to) {
  find_sources(graph);
  require_sources(graph);
}

bool DimValues::knows(const Dim& size) const {
  return std::ranges::all_of(size.unknowns(), [&](const std::string& name) { return sources_.contains(name); });
}

/// Prefers sizes that are an unknown itself, then solves the others for one unknown at a time.
void DimValues::find_sources(const ir::Graph& graph) {
  const auto each_input_size = [&](const auto& f) {
    for (const ir::Node& node : graph.nodes)
      if (node.op == &ir::ops::input)
        for (int i = 0; i < node.type.rank(); ++i) f(node, i, node.type.shape[i]);
  };
  each_input_size([&](const ir::Node& input, int axis, const Dim& size) {
    const std::vector<std::string> unknowns = size.unknowns();
    if (unknowns.size() == 1 && size == Dim(unknowns[0]))
      sources_.try_emplace(unknowns[0], Source{input.name, axis, 1, Dim(0)});
  });
  for (std::size_t before = sources_.size() + 1; before != sources_.size();) {
    before = sources_.size();
    each_input_size([&](const ir::Node& input, int axis, const Dim& size) {
      for (const std::string& unknown : size.unknowns()) {
        if (sources_.contains(unknown)) continue;
        if (const auto found = linear_in(size, unknown, [&](const Dim& rest) { return knows(rest); }))
          sources_.try_emplace(unknown, Source{input.name, axis, found->first, found->second});
      }
    });
  }
}

void DimValues::require_sources(const ir::Graph& graph) const {
  for (const ir::Node& node : graph.nodes) {
    if (ir::is_loop(node)) require_sources(ir::loop_body(node).graph());
    // The sizes of parameters and states are those of their values.
    if (node.op == &ir::ops::parameter || node.op == &ir::ops::state) continue;
    each_size(node, [&](const Dim& size) {
      for (const std::string& unknown : size.unknowns())
        if (!sources_.contains(unknown))
          throw UserError(node.loc, node.op->name.value,
                          fmt::format("the size {} does not follow from the size of an input", unknown),
                          "export_size", "ONNX has no other sizes: give it a number, or an input of this size");
    });
  }
}

Text DimValues::unknown(const std::string& name) {
  const ModelBuilder::Around around(to_);
  if (const auto found = unknowns_.find(name); found != unknowns_.end()) return found->second;
  const Source source = sources_.at(name);
  const std::int64_t axis = source.axis;
  Text value = to_.add("Shape", {to_.keep(source.name)},
                       {integer_attribute("start", axis), integer_attribute("end", axis + 1)});
  if (!source.rest.is(0)) value = to_.add("Sub", {value, vector(source.rest)});
  if (source.scale != 1) value = to_.add("Div", {value, to_.integers({source.scale})});
  unknowns_.emplace(name, value);
  return value;
}

/// The value of coefficient * product of powers.
Text DimValues::term(const Dim::Term& term) {
  Text product;
  const auto multiply = [&](Text factor) { product = product.empty() ? factor : to_.add("Mul", {product, factor}); };
  if (term.coefficient != 1 || term.monomial.empty()) multiply(to_.integers({term.coefficient}));
  for (const auto& [name, power] : term.monomial)
    for (int i = 0; i < power; ++i) multiply(unknown(name));
  return product;
}

Text DimValues::vector(const Dim& size) {
  const ModelBuilder::Around around(to_);
  if (const auto number = size.value()) return to_.integers({*number});
  const std::string key = size.unnamed().to_string();
  if (const auto found = vectors_.find(key); found != vectors_.end()) return found->second;
  Text sum;
  for (const Dim::Term& each : size.terms()) {
    const Text value = term(each);
    sum = sum.empty() ? value : to_.add("Add", {sum, value});
  }
  vectors_.emplace(key, sum);
  return sum;
}

Text DimValues::scalar(const Dim& size) {
  if (const auto number = size.value()) return to_.scalar(*number, i64);
  const ModelBuilder::Around around(to_);
  return to_.add("Squeeze", {vector(size), to_.integers({0})});
}

/// Numbers next to each other are one constant.
Text DimValues::shape(const Shape& shape) {
  const ModelBuilder::Around around(to_);
  std::vector<Text> parts;
  std::vector<std::int64_t> numbers;
  const auto close = [&] {
    if (!numbers.empty()) parts.push_back(to_.integers(numbers));
    numbers.clear();
  };
  for (const Dim& size : shape) {
    if (const auto number = size.value()) {
      numbers.push_back(*number);
    } else {
      close();
      parts.push_back(vector(size));
    }
  }
  if (parts.empty()) return to_.integers(numbers);
  close();
  return parts.size() == 1 ? parts[0] : to_.add("Concat", std::move(parts), {integer_attribute("axis", 0)});
}

}  // namespace lathe::onnx
