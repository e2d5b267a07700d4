#include <fmt/core.h>

#include <algorithm>

#include "models/import/ops/tensor_functions.h"
#include "models/import/pt2/check_program.h"
#include "models/import/pt2/program_importer.h"

/// The arguments of a node, as the layer for all formats has them: operands in the order of the op's record, and
/// attributes by name.
namespace lathe::pt2 {

using importing::DimTensor;
using importing::OpRecord;
using importing::SourceAttribute;
using importing::Value;
using Kind = Argument::Kind;

namespace {

/// Returns an argument that does not refer to values as an attribute; nothing for one that is no attribute.
std::optional<SourceAttribute> attribute_of(const Argument& argument) {
  switch (argument.kind) {
    case Kind::integer:
    case Kind::boolean:
    case Kind::dtype: return argument.integer;
    case Kind::real: return argument.real;
    case Kind::text: return argument.text;
    case Kind::integers:
    case Kind::booleans: return argument.integers;
    case Kind::reals: return argument.reals;
    case Kind::texts: return argument.texts;
    default: return std::nullopt;
  }
}

}  // namespace

Value ProgramImporter::sizes(const Values& values, const NodePart& node, const NamedArgument& argument) const {
  DimTensor dims{i64, {static_cast<std::int64_t>(argument.value.sizes.size())}, {}};
  for (const SizeArgument& size : argument.value.sizes) {
    if (const auto* number = std::get_if<std::int64_t>(&size)) {
      dims.elements.emplace_back(*number);
      continue;
    }
    const std::string& name = std::get<std::string>(size);
    const std::optional<DimTensor> known = value_of(values, node, name).dims();
    if (!known || known->elements.size() != 1)
      importing::throw_size_error(
          UserError(location(node), op_of(node.target).second,
                    fmt::format("the size '{}' in {} is no polynomial of the sizes of inputs", name, argument.name),
                    "import_size",
                    "sizes must follow from the sizes of inputs by sums, products and quotients; they can be fixed "
                    "with --fix-dim NAME=SIZE or ImportOptions::sizes"),
          value_of(values, node, name).needed_multiple());
    dims.elements.push_back(known->elements[0]);
  }
  return Value(std::move(dims));
}

Value ProgramImporter::operand(const Values& values, const NodePart& node, const NamedArgument& argument) const {
  const Argument& value = argument.value;
  switch (value.kind) {
    case Kind::none: return {};
    case Kind::value: return value_of(values, node, value.text);
    case Kind::integer: return Value::constant(importing::scalar_of(value.integer, i64));
    case Kind::boolean: return Value::constant(importing::scalar_of(value.integer, boolean));
    case Kind::real: return Value::constant(importing::scalar_of(value.real, f64));
    case Kind::integers: return Value::constant(importing::vector_of(value.integers, i64));
    case Kind::reals: return Value::constant(importing::vector_of(value.reals, f64));
    case Kind::sizes: return sizes(values, node, argument);
    default: break;
  }
  fail(node, fmt::format("the argument {} has a kind that is not supported", argument.name), "import_attribute");
}

std::vector<Value> ProgramImporter::operands(const Values& values, const GraphPart& graph, const NodePart& node,
                                             const OpRecord& record, importing::SourceNode& source) const {
  std::vector<Value> all;
  std::vector<bool>& numbers = source.numbers;
  for (const std::string_view name : importing::words_of(record.operands)) {
    const std::size_t before = all.size();
    const auto found = std::ranges::find_if(
        node.arguments, [&](const NamedArgument& argument) { return record_name(record, node, argument) == name; });
    if (found == node.arguments.end()) {
      all.emplace_back();
    } else if (found->value.kind == Kind::values) {
      for (const std::string& each : found->value.texts)
        all.push_back(each.empty() ? Value() : value_of(values, node, each));
    } else {
      all.push_back(operand(values, node, *found));
      const bool is_symbol =
          found->value.kind == Kind::value && !graph.tensors.contains(found->value.text) && all.back().rank() == 0;
      numbers.resize(all.size(), false);
      numbers.back() = found->value.kind != Kind::value || is_symbol;
    }
    source.groups.push_back(all.size() - before);
  }
  while (!all.empty() && all.back().is_absent()) all.pop_back();
  numbers.resize(all.size(), false);
  return all;
}

void ProgramImporter::add_attributes(const Values& values, const NodePart& node, const OpRecord& record,
                                     importing::SourceNode& source) {
  for (const NamedArgument& argument : node.arguments) {
    if (!importing::has_attribute(record, argument.name) || argument.value.kind == Kind::none) continue;
    if (argument.value.kind == Kind::graph) {
      source.bodies.emplace(argument.name, [&](std::vector<Value> inputs, const Graph& into) {
        return add_body(node, *argument.value.graph, std::move(inputs), into);
      });
      continue;
    }
    std::optional<SourceAttribute> attribute = attribute_of(argument.value);
    if (!attribute && (argument.value.kind == Kind::value || argument.value.kind == Kind::sizes)) {
      // Sizes that are numbers after all.
      const std::optional<DimTensor> known = operand(values, node, argument).dims();
      if (const auto numbers = known ? known->numbers() : std::nullopt)
        attribute = argument.value.kind == Kind::sizes ? SourceAttribute(numbers->values<std::int64_t>())
                                                       : SourceAttribute(numbers->get_int(0));
    }
    if (!attribute)
      fail(node, fmt::format("the argument {} is not known at import", argument.name), "import_attribute",
           "it must be a number, a text, or a list of them");
    if (!source.attributes.emplace(argument.name, *std::move(attribute)).second)
      fail(node, fmt::format("the argument {} is given twice", argument.name), "import_attribute");
  }
}

}  // namespace lathe::pt2
