#include "models/import/pt2/program_importer.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "frontend/ops/derived_ops.h"
#include "ir/support/error.h"
#include "models/import/fixed_input.h"
#include "models/import/kept_tensor.h"
#include "models/import/pt2/check_program.h"

namespace lathe::pt2 {

using importing::Kept;
using importing::Results;
using importing::Value;

namespace {

constexpr int max_subgraph_depth = 16;

bool is_user(const OutputSpec& output) {
  return output.kind == OutputSpec::Kind::user || output.kind == OutputSpec::Kind::loss;
}

}  // namespace

Value ProgramImporter::in_type_of(const Value& old, const Value& value) const {
  if (value.dtype() == old.dtype() && value.shape() == old.shape()) return value;
  return value.in(imported_.graph).to(old.dtype()).expand(old.shape());
}

ProgramImporter::ProgramImporter(const std::filesystem::path& path, const ExportedProgram& program,
                                 const ProgramTensors& tensors, const importing::OpTable& ops,
                                 const importing::ImportOptions& options)
    : file_(path.filename().string()),
      program_(program),
      tensors_(tensors),
      ops_(ops),
      options_(options),
      dims_(program),
      imported_{Graph(path.stem().string()), {}, {}} {}

importing::ImportedGraph ProgramImporter::import() {
  Values values;
  add_inputs(values);
  add_ranges();
  add_graph(values, program_.graph, 0);
  add_outputs(values);
  return std::move(imported_);
}

void ProgramImporter::define(Values& values, const std::string& name, Value value) const {
  if (!values.emplace(name, std::move(value)).second)
    throw UserError(fmt::format("{}: the value '{}' is defined twice", file_, name), "import_file");
}

const Value& ProgramImporter::value_of(const Values& values, const NodePart& node, const std::string& name) const {
  const auto found = values.find(name);
  if (found == values.end())
    fail(node, fmt::format("the operand '{}' is not defined before the node", name), "import_file",
         "nodes must be in the order of their computation");
  return found->second;
}

void ProgramImporter::add_inputs(Values& values) {
  for (const InputSpec& input : program_.inputs) {
    if (input.kind == InputSpec::Kind::user)
      add_user_input(values, input.value);
    else if (input.kind != InputSpec::Kind::fixed)
      define(values, input.value.text, stored(input));
  }
  for (const auto& [name, value] : options_.inputs)
    if (std::ranges::none_of(program_.inputs, [&](const InputSpec& input) {
          return input.kind == InputSpec::Kind::user && input.value.text == name;
        }))
      throw UserError(fmt::format("{} has no input '{}'", file_, name), "argument_unknown");
}

void ProgramImporter::add_user_input(Values& values, const Argument& input) {
  if (input.kind != Argument::Kind::value) return;  // a number or a text, which is part of the nodes
  const std::string& name = input.text;
  const auto found = program_.graph.tensors.find(name);
  const bool is_tensor = found != program_.graph.tensors.end();
  // Numbers are inputs of one element.
  const Shape shape = is_tensor ? dims_.input_shape(name, found->second, file_) : Shape();
  const DType dtype = is_tensor ? dtype_of(found->second.dtype, fmt::format("{}: the input '{}'", file_, name)) : i64;
  if (options_.inputs.contains(name))
    return define(values, name, importing::fixed_input(options_.inputs.at(name), name, file_, dtype, shape));
  const ir::GraphBuilder::At line(imported_.graph.builder(), Location(file_ + ":" + name, 0));
  define(values, name, imported_.graph.input(name, dtype, shape));
}

bool ProgramImporter::is_updated(const std::string& buffer) const {
  return std::ranges::any_of(program_.outputs, [&](const OutputSpec& output) {
    return output.kind == OutputSpec::Kind::buffer && output.target == buffer;
  });
}

/// Parameters and the buffers of the state dict keep their names. Other tensors are constants if they are small.
Value ProgramImporter::stored(const InputSpec& input) {
  const bool is_parameter = input.kind == InputSpec::Kind::parameter;
  const bool is_buffer = input.kind == InputSpec::Kind::buffer, changes = is_buffer && is_updated(input.target);
  const std::string place = tensors_.place(input.target);
  if (const auto known = stored_.find(place); known != stored_.end() && !changes) return known->second;
  HostTensor tensor = tensors_.read(input.target);
  const bool has_name = is_parameter || changes || (is_buffer && input.is_persistent);
  if (!has_name && tensor.numel() <= importing::most_elements) return Value::constant(std::move(tensor));
  const bool is_trained = is_parameter && is_float(tensor.dtype());
  if (is_trained && !tensors_.is_trained(input.target))
    detail::state_of(imported_.graph)->note_frozen_mark(input.target, std::make_shared<const bool>(true));
  Value value = importing::kept_tensor(imported_, Location(file_ + ":" + input.target, 0), input.target,
                                       std::move(tensor), is_trained ? Kept::parameter : Kept::state);
  if (!changes) stored_.emplace(place, value);
  if (changes) buffers_.emplace(input.target, value);
  return value;
}

void ProgramImporter::add_ranges() const {
  std::set<std::string> bound;  // by the sizes of inputs
  const ir::Graph& graph = imported_.graph.ir();
  for (const ir::ValueId argument : graph.arguments())
    for (const Dim& size : graph[argument].type.shape)
      for (const std::string& name : size.unknowns()) bound.insert(name);
  std::vector<ir::DimCheck> checks;
  const auto add = [&](const Dim& left, const Dim& right, std::string message) {
    checks.push_back({.left = left,
                      .right = right,
                      .relation = ir::DimCheck::Relation::at_most,
                      .loc = Location(file_ + ":inputs", 0),
                      .op = "input",
                      .label = "import_range",
                      .message = std::move(message)});
  };
  for (const auto& [symbol, range] : program_.ranges) {
    const Dim& dim = dims_.symbols().at(symbol);
    if (!bound.contains(dim.name())) continue;
    // The exporter writes 2 for sizes without a lower limit, and PyTorch runs them with 0 and 1 too.
    constexpr std::int64_t no_limit = std::int64_t{1} << 62;
    if (range.lowest && *range.lowest > 2)
      add(*range.lowest, dim, fmt::format("the model is exported for {} or more", *range.lowest));
    if (range.highest && *range.highest < no_limit)
      add(dim, *range.highest, fmt::format("the model is exported for {} or less", *range.highest));
  }
  imported_.graph.builder().add_checks(checks);
}

void ProgramImporter::add_graph(Values& values, const GraphPart& graph, int depth) {
  StorageOwners owners;
  for (const NodePart& node : graph.nodes) {
    const Location here = location(node);
    try {
      if (depth > max_subgraph_depth) fail(node, "too many nested subgraphs", "import_file");
      const GraphPart* const inner = wrapped_graph(node);
      inner ? add_wrapped(values, node, *inner, depth) : add_op(values, graph, node);
      const importing::OpRecord* const record = inner ? nullptr : find_op(ops_, node.target);
      if (record && record->name != op_of(node.target).second)
        replace_written(values, node, owners);
      else
        owners.add(node, record);
    } catch (const UserError& error) {
      // Some functions of the DSL raise errors at their own line.
      const std::string_view text = error.what();
      if (text.find(here.place()) != std::string_view::npos || text.starts_with(file_)) throw;
      throw error.with_note(fmt::format("at {}", here.place()));
    }
  }
}

void ProgramImporter::replace_written(Values& values, const NodePart& node, StorageOwners& owners) const {
  const std::vector<std::string> names = owners.write(node);
  if (names.empty() || node.results.empty()) fail(node, "the op writes to a value with views", "import_file");
  const Value result = value_of(values, node, node.results[0].text);
  for (const std::string& name : names) values.insert_or_assign(name, result);
}

/// The arguments after the graph are its inputs. Nothing in torch.no_grad() has a gradient.
void ProgramImporter::add_wrapped(Values& values, const NodePart& node, const GraphPart& inner, int depth) {
  const auto first = std::ranges::find_if(node.arguments,
                                          [&](const NamedArgument& argument) {
                                            return argument.value.kind == Argument::Kind::graph;
                                          }) -
                     node.arguments.begin() + 1;
  const std::size_t given = node.arguments.size() - static_cast<std::size_t>(first);
  if (given != inner.inputs.size() || inner.outputs.size() != node.results.size())
    fail(node, "the subgraph has other numbers of inputs or outputs", "import_file");
  Values locals;
  for (std::size_t i = 0; i < given; ++i)
    if (inner.inputs[i].kind == Argument::Kind::value)
      define(locals, inner.inputs[i].text,
             operand(values, node, node.arguments[static_cast<std::size_t>(first) + i]));
  add_graph(locals, inner, depth + 1);
  const Argument& enabled = node.arguments[0].value;
  const bool has_gradients = enabled.kind != Argument::Kind::boolean || enabled.integer != 0;
  for (std::size_t i = 0; i < node.results.size(); ++i) {
    if (node.results[i].kind != Argument::Kind::value) continue;
    Value value = value_of(locals, node, inner.outputs[i].text);
    if (!has_gradients && !value.constant() && !value.dims() && is_float(value.dtype()))
      value = detach(value.in(imported_.graph));
    define(values, node.results[i].text, value);
  }
}

void ProgramImporter::add_op(Values& values, const GraphPart& graph, const NodePart& node) {
  const importing::OpRecord* const record = find_op(ops_, node.target);
  LATHE_ASSERT(record);  // check_program() has found it
  const auto [domain, name] = op_of(node.target);
  importing::SourceNode source{.op = name, .version = 1, .location = location(node)};
  std::vector<std::string> results;
  for (const Argument& result : node.results) {
    if (result.kind == Argument::Kind::values)
      results.insert(results.end(), result.texts.begin(), result.texts.end());
    else
      results.push_back(result.kind == Argument::Kind::value ? result.text : "");
  }
  // The exporter gives results that are not read a name with "_unused_".
  for (const std::string& result : results)
    source.results.push_back(!result.empty() && result.find("_unused_") == std::string::npos);
  std::vector<Value> given = operands(values, node, *record, source.numbers);
  add_attributes(values, node, *record, source);
  assertions_.note(node, given);
  if (assertions_.record(node, source.location, imported_.graph)) return;
  const importing::OpCall call(source, std::move(given), imported_.graph);
  Results built = importing::import_op(*record, call);
  // A write in place keeps the dtype and the shape.
  if (record->name != name && !built.empty() && call.has(0)) built[0] = in_type_of(call.operand(0), built[0]);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const bool is_missing = i >= built.size() || built[i].is_absent();
    if (is_missing && source.results[i]) call.fail(fmt::format("result {}, '{}', is not supported", i, results[i]));
    if (is_missing || results[i].empty()) continue;
    if (const auto meta = graph.tensors.find(results[i]); meta != graph.tensors.end())
      check_type(node, results[i], meta->second, built[i]);
    define(values, results[i], std::move(built[i]));
  }
}

void ProgramImporter::check_type(const NodePart& node, const std::string& name, const TensorMeta& meta,
                                 const Value& value) const {
  const DType dtype = dtype_of(meta.dtype, fmt::format("{}: the result '{}'", file_, name));
  const Shape shape = value.shape();
  bool fits = value.dtype() == dtype && static_cast<std::size_t>(shape.rank()) == meta.sizes.size();
  for (int i = 0; fits && i < shape.rank(); ++i)
    if (const std::optional<Dim> size = dims_.dim(meta.sizes[static_cast<std::size_t>(i)]))
      fits = size->equals(shape[i]) != Dim::Answer::no;
  if (fits) return;
  std::string sizes;
  for (const SizeText& size : meta.sizes) {
    const std::optional<Dim> known = dims_.dim(size);
    sizes += (sizes.empty() ? "" : ", ") + (known ? known->to_string() : std::get<std::string>(size));
  }
  fail(node,
       fmt::format("the result is {}, and {}[{}] in the file",
                   ir::TensorType::contiguous(value.dtype(), shape).to_string(), lathe::name(dtype), sizes),
       "import_file", "the file is damaged, or Lathe misreads this op: please report it");
}

void ProgramImporter::add_outputs(const Values& values) {
  std::size_t user = 0;
  for (const OutputSpec& output : program_.outputs) {
    const std::string name = is_user(output) ? program_.output_names[user++] : output.target;
    if (output.value.kind != Argument::Kind::value) continue;  // None, or a number that is known before the run
    const auto found = values.find(output.value.text);
    if (found == values.end())
      throw UserError(fmt::format("{}: no node computes the output '{}'", file_, output.value.text), "import_file");
    const ir::GraphBuilder::At line(imported_.graph.builder(), Location(file_ + ":" + name, 0));
    const Tensor tensor = found->second.in(imported_.graph);
    if (is_user(output)) {
      imported_.graph.output(name, tensor);
      imported_.outputs.emplace(name, tensor);
      continue;
    }
    const auto buffer = buffers_.find(output.target);
    if (buffer == buffers_.end())
      throw UserError(fmt::format("{}: the buffer '{}', which is updated, is no input", file_, name), "import_file");
    imported_.graph.update(buffer->second.in(imported_.graph), tensor);
  }
}

Location ProgramImporter::location(const NodePart& node) const {
  return Location(fmt::format("{}:{}", file_, node_path(node)), 0, node.module);
}

void ProgramImporter::fail(const NodePart& node, std::string_view message, std::string_view label,
                           std::string_view hint) const {
  throw UserError(location(node), op_of(node.target).second, message, label, hint);
}

}  // namespace lathe::pt2
