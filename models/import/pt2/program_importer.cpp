#include "models/import/pt2/program_importer.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "frontend/ops/derived_ops.h"
#include "ir/support/error.h"

namespace lathe::pt2 {

using importing::Results;
using importing::Value;

namespace {

constexpr int max_subgraph_depth = 16;
constexpr std::int64_t max_nodes = std::int64_t{1} << 20;

/// Counts a subgraph while its nodes are added.
class Deeper {
 public:
  explicit Deeper(int& depth) : depth_(depth) { ++depth_; }
  ~Deeper() { --depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  int& depth_;
};

}  // namespace

Value ProgramImporter::in_type_of(const Value& old, const Value& value) const {
  if (value.dtype() == old.dtype() && value.shape() == old.shape()) return value;
  return value.in(into_).to(old.dtype()).expand(old.shape());
}

ProgramImporter::ProgramImporter(const std::filesystem::path& path, const ExportedProgram& program,
                                 const ProgramAccesses& accesses, const ProgramTensors& tensors,
                                 const importing::OpTable& ops, const importing::ImportOptions& options,
                                 importing::InputDims& input_dims)
    : file_(path.filename().string()),
      program_(program),
      accesses_(accesses),
      tensors_(tensors),
      ops_(ops),
      options_(options),
      dims_(program, input_dims),
      imported_{Graph(path.stem().string()), {}, {}},
      into_(imported_.graph) {
  input_dims.check_sizes(file_);
}

importing::ImportedGraph ProgramImporter::import() {
  Values values;
  add_inputs(values);
  add_ranges();
  add_guards();
  check_fixed_sizes();
  check_written();
  add_graph(values, program_.graph);
  add_outputs(values);
  add_written(values);
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

void ProgramImporter::add_graph(Values& values, const GraphPart& graph) {
  for (const NodePart& node : graph.nodes) {
    const Location here = location(node);
    try {
      if (++nodes_ > max_nodes)
        fail(node, fmt::format("the program has more than {} nodes, with those of loops that are counted", max_nodes),
             "import_file");
      if (depth_ > max_subgraph_depth) fail(node, "too many nested subgraphs", "import_file");
      const GraphPart* const inner = wrapped_graph(node);
      inner ? add_wrapped(values, node, *inner) : add_op(values, graph, node);
      if (const auto written = accesses_.writes.find(&node); written != accesses_.writes.end())
        replace_written(values, graph, node, written->second);
    } catch (const UserError& error) {
      // Some functions of the DSL raise errors at their own line.
      const std::string_view text = error.what();
      if (text.find(here.place()) != std::string_view::npos || text.starts_with(file_)) throw;
      throw error.with_note(fmt::format("at {}", here.place()));
    }
  }
}

void ProgramImporter::replace_written(Values& values, const GraphPart& graph, const NodePart& node,
                                      const WrittenValues& written) {
  std::string part = node.results[0].text;
  for (const std::string& name : written.names) values.insert_or_assign(name, value_of(values, node, part));
  for (std::size_t i = written.slices.size(); i-- > 0;) {
    const std::string whole = written.slices[i]->arguments[0].value.text;
    part = add_scatter(values, graph, *written.slices[i], part);
    values.insert_or_assign(whole, value_of(values, node, part));
  }
  for (const std::string& name : written.whole_names) values.insert_or_assign(name, value_of(values, node, part));
}

/// Puts a part in the place of a slice of a value. Returns the name of the new value.
std::string ProgramImporter::add_scatter(Values& values, const GraphPart& graph, const NodePart& slice,
                                         const std::string& part) {
  NodePart scatter = slice;
  scatter.target = op_of(slice.target).second == "select.int" ? "torch.ops.aten.select_scatter.default"
                                                              : "torch.ops.aten.slice_scatter.default";
  Argument source;
  source.kind = Argument::Kind::value;
  source.text = part;
  scatter.arguments.insert(scatter.arguments.begin() + 1, {"src", source});
  scatter.results.resize(1);
  scatter.results[0].text = fmt::format("{}, written to {}", part, slice.name);
  add_op(values, graph, scatter);
  return scatter.results[0].text;
}

/// The arguments after the graph are its inputs. Nothing in torch.no_grad() has a gradient.
void ProgramImporter::add_wrapped(Values& values, const NodePart& node, const GraphPart& inner) {
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
  const Deeper deeper(depth_);
  add_graph(locals, inner);
  const Argument& enabled = node.arguments[0].value;
  const bool has_gradients = enabled.kind != Argument::Kind::boolean || enabled.integer != 0;
  for (std::size_t i = 0; i < node.results.size(); ++i) {
    if (node.results[i].kind != Argument::Kind::value) continue;
    Value value = value_of(locals, node, inner.outputs[i].text);
    if (!has_gradients && !value.constant() && !value.dims() && is_float(value.dtype()))
      value = detach(value.in(into_));
    define(values, node.results[i].text, value);
  }
}

Results ProgramImporter::add_body(const NodePart& node, const GraphPart& body, std::vector<Value> inputs,
                                  const Graph& into) {
  if (inputs.size() != body.inputs.size())
    fail(node, fmt::format("a subgraph has {} inputs, and the node gives {}", body.inputs.size(), inputs.size()),
         "import_file");
  Values locals;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (body.inputs[i].kind == Argument::Kind::value) define(locals, body.inputs[i].text, std::move(inputs[i]));
  const Deeper deeper(depth_);
  const Graph around = std::exchange(into_, into);
  add_graph(locals, body);
  into_ = around;
  Results results;
  for (const Argument& output : body.outputs) results.push_back(operand(locals, node, {"output", output}));
  return results;
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
  const auto& reads = accesses_.reads.at(&graph);
  for (const std::string& result : results) source.results.push_back(!result.empty() && reads.contains(result));
  if (record->name == "as_strided") require_row_major(graph, node);
  std::vector<Value> given = operands(values, graph, node, *record, source);
  add_attributes(values, node, *record, source);
  assertions_.note(node, given);
  if (assertions_.record(node, source.location, into_)) return;
  const importing::OpCall call(source, std::move(given), into_);
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

void ProgramImporter::require_row_major(const GraphPart& graph, const NodePart& node) const {
  const auto meta = graph.tensors.find(node.arguments.empty() ? "" : node.arguments[0].value.text);
  bool is_row_major = meta != graph.tensors.end() && meta->second.offset == SizeText(std::int64_t{0});
  Dim step = 1;
  for (std::size_t i = is_row_major ? meta->second.sizes.size() : 0; i-- > 0 && is_row_major;) {
    const std::optional<Dim> size = dims_.dim(meta->second.sizes[i]), stride = dims_.dim(meta->second.strides[i]);
    is_row_major = size && stride && (size->is(1) || stride->unnamed() == step);
    if (size) step = step * size->unnamed();
  }
  if (!is_row_major)
    fail(node, "the operand is a part of its storage, or not in row-major order", "import_unsupported",
         "call contiguous() before as_strided()");
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
  // PyTorch computes numbers, and quotients of integers, in its default dtype, which a file does not have.
  const bool has_default = value.dtype() == f32 && dtype != f32 && is_float(dtype);
  fail(node,
       fmt::format("the result is {}, and {}[{}] in the file",
                   ir::TensorType::contiguous(value.dtype(), shape).to_string(), lathe::name(dtype), sizes),
       "import_file",
       has_default
           ? "if the export ran after torch.set_default_dtype(), export the model with the default float32, and "
             "give dtypes to tensors that forward() makes; otherwise please report this op"
           : "the file is damaged, or Lathe misreads this op: please report it");
}

Location ProgramImporter::location(const NodePart& node) const {
  return Location(fmt::format("{}:{}", file_, node_path(node)), 0, node.module);
}

void ProgramImporter::fail(const NodePart& node, std::string_view message, std::string_view label,
                           std::string_view hint) const {
  throw UserError(location(node), op_of(node.target).second, message, label, hint);
}

}  // namespace lathe::pt2
