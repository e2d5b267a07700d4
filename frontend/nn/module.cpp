#include "frontend/nn/module.h"

#include <fmt/core.h>

#include <optional>
#include <set>
#include <utility>

#include "frontend/initial_values.h"
#include "frontend/ops/ops.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/support/error.h"
#include "ir/support/nearest.h"

namespace lathe::nn {

struct Module::Node {
  std::string path, name, kind;
  DType dtype;
  std::optional<Graph> graph;                                 ///< if set, parameters are declared there at once
  std::shared_ptr<std::set<std::string, std::less<>>> taken;  ///< names of all parameters in the tree
  std::vector<Parameter> parameters;                          ///< parameters of this module only
  std::vector<Module> children;
  std::shared_ptr<LinearState> linear = {};  ///< of a Linear
};

namespace {

std::string join(std::string_view path, std::string_view name) {
  if (path.empty() || name.empty()) return std::string(path.empty() ? name : path);
  return fmt::format("{}.{}", path, name);
}

void collect(const Module& module, std::vector<Parameter>& all) {
  all.insert(all.end(), module.own_parameters().begin(), module.own_parameters().end());
  for (const Module& child : module.children()) collect(child, all);
}

/// The graphs of the module calls that are running on this thread, innermost last.
thread_local std::vector<std::weak_ptr<detail::GraphState>> running_calls;

template <class Choose>
ParameterFilter filter(const Module& module, const Choose& choose) {
  std::set<std::string> names;
  for (const Parameter& parameter : module.parameters())
    if (choose(parameter)) names.insert(parameter.name());
  return [names = std::move(names)](const ir::Node& node) { return names.contains(node.name); };
}

}  // namespace

/// The tensor of this name in the graph; declares it at the first use.
Tensor Parameter::declared(const Graph& graph, const std::string& name, DType dtype, const Shape& shape) const {
  graph.state_->note_frozen_mark(name, std::shared_ptr<const bool>(info_, &info_->frozen));
  if (const auto found = graph.builder().find_argument(name)) {
    const ir::TensorType& type = found->type();
    if (found->node().op == &ir::ops::parameter && type.dtype == dtype && type.shape == shape) return Tensor(*found);
    throw UserError(info_->loc, "parameter",
                    fmt::format("@{} has an argument {} already, of type {}, not {}{}", graph.ir().name, name,
                                type.to_string(), lathe::name(dtype), shape.to_string()),
                    "argument_name", "give the module or the argument another name");
  }
  const ir::GraphBuilder::At at(graph.builder(), info_->loc);
  const ir::Value made = graph.builder().argument(ir::ops::parameter, name, dtype, shape);
  graph.state_->initializers.push_back({name, is_quantized() ? Init::zeros() : info_->init});
  return Tensor(made);
}

Shape Parameter::stored_shape() const {
  return info_->transposed ? Shape{info_->shape[1], info_->shape[0]} : info_->shape;
}

std::optional<Tensor> Parameter::replaced(const Graph& graph) const {
  using Substitutions = detail::GraphState::Substitutions;
  /// Restores the list, because a function sees only the substitutions around it while it runs.
  struct Restored {
    explicit Restored(Substitutions& to) : active(to), all(to) {}
    ~Restored() { active = std::move(all); }
    Restored(const Restored&) = delete;
    Restored& operator=(const Restored&) = delete;
    Substitutions& active;
    Substitutions all;
  };
  if (graph.state_->substitutions.empty()) return std::nullopt;
  const Location line = graph.builder().location();
  std::optional<Tensor> found;
  const Restored list(graph.state_->substitutions);
  // Outside of the module's scope, so that names of states are complete.
  const ir::GraphBuilder::At top(graph.builder(), Location(line.file(), line.line(), ""));
  for (std::size_t i = list.all.size(); i > 0 && !found; --i) {
    list.active.pop_back();
    found = list.all[i - 1](*this);
  }
  if (!found) return std::nullopt;
  const std::string given = found->is_empty() ? "an empty tensor" : found->value().type().to_string();
  if (is_quantized() || found->is_empty() || found->dtype() != dtype() || found->shape() != shape())
    throw UserError(
        graph.builder().location(), "substitution",
        is_quantized() ? fmt::format("{} is stored quantized", name())
                       : fmt::format("{} is {}{}, and its substitute {}", name(), lathe::name(dtype()),
                                     shape().to_string(), given),
        "parameter_replaced",
        is_quantized() ? "load the model without quantization" : "give it a tensor of its dtype and shape");
  return found;
}

Tensor Parameter::in(const Graph& graph) const {
  // A body of a loop may have substitutions of its own.
  for (auto state = graph.state_; state; state = std::dynamic_pointer_cast<detail::GraphState>(state->outer()))
    if (const std::optional<Tensor> other = replaced(Graph(state))) return *other;
  const Graph around(detail::around_loops(graph.state_));
  return declared(around, info_->name, info_->dtype, stored_shape());
}

Tensor Parameter::here(Where at) const {
  const auto& graph_of = running_calls.empty() ? info_->home : running_calls.back();
  std::shared_ptr<detail::GraphState> graph = graph_of.lock();
  if (!graph)
    throw UserError(Location(at), "parameter",
                    fmt::format("{} is used as a tensor where no graph is being built", name()), "parameter_graph",
                    "use it in forward() of an nn::Layer, or write in(x), which returns it in the graph of x");
  if (is_quantized())
    throw UserError(detail::line_of(*graph, at), "parameter", fmt::format("{} is stored quantized", name()),
                    "parameter_graph", "as(x) returns its values in the dtype of x");
  return in(Graph(std::move(graph)));
}

Tensor Parameter::scales(const Graph& graph) const {
  const Shape stored = stored_shape();
  return declared(Graph(detail::around_loops(graph.state_)), scales_name(), f32,
                  {stored[0], Dim(stored[1].value().value_or(0) / info_->block)});
}

Tensor Parameter::as(const Tensor& like, Where at) const {
  const Graph graph = like.graph(at);
  const Tensor stored = in(graph);
  const Tensor parameter = is_quantized() ? dequantize(stored, scales(graph), at) : stored;
  const Tensor cast = parameter.to(like.dtype(at), at);
  return info_->transposed ? cast.transpose(0, 1, at) : cast;
}

Tensor Parameter::rows(const Tensor& ids, Where at) const {
  const Graph graph = ids.graph(at);
  const Tensor found = embedding(ids, in(graph), at);
  return is_quantized() ? dequantize(found, embedding(ids, scales(graph), at), at) : found;
}

void Parameter::store_quantized(std::int64_t block, bool transposed) const {
  const int last = transposed ? 0 : 1;
  const bool is_matrix = info_->shape.rank() == 2 && block > 0;
  if (!is_matrix || info_->shape[last].value().value_or(1) % block != 0)
    throw UserError(info_->loc, "parameter",
                    fmt::format("{} {} has no rows of blocks of {}", info_->name, info_->shape.to_string(), block),
                    "quantize_block", "give a matrix whose rows are a multiple of the block");
  info_->dtype = i8, info_->block = block, info_->transposed = transposed;
}

Module::Module(std::string_view kind, DType dtype) : node_(std::make_shared<Node>()) {
  node_->kind = kind;
  node_->dtype = dtype;
  node_->taken = std::make_shared<std::set<std::string, std::less<>>>();
}

Module::Module(const Graph& graph, DType dtype) : Module("Module", dtype) {
  node_->path = graph.scope_path();
  node_->graph = graph;
}

Module::Module(const Module& parent, std::string_view name, std::string_view kind, std::optional<DType> dtype)
    : node_(std::make_shared<Node>(Node{.path = join(parent.path(), name),
                                        .name = std::string(name),
                                        .kind = std::string(kind),
                                        .dtype = dtype.value_or(parent.dtype()),
                                        .graph = parent.node_->graph,
                                        .taken = parent.node_->taken,
                                        .parameters = {},
                                        .children = {}})) {
  parent.node_->children.push_back(*this);
}

Parameter Module::declare(std::string_view name, DType dtype, const Shape& shape, const Init& init, const Where& at) {
  const std::string full = join(path(), name);
  if (full.empty() || !node_->taken->insert(full).second)
    throw UserError(Location(at), "parameter",
                    full.empty() ? std::string("a parameter needs a name")
                                 : fmt::format("the model has a parameter named {} already", full),
                    "parameter_name", "give each parameter and sub-module a name of its own");
  check_init(init, full, Location(at));
  Parameter made({.name = full, .dtype = dtype, .shape = shape, .init = init, .loc = Location(at)});
  node_->parameters.push_back(made);
  if (node_->graph) {
    // In a graph, the line may be that of the caller of a library function.
    const detail::Line line(node_->graph->builder(), at);
    made.info_->loc = node_->graph->builder().location();
    made.info_->home = node_->graph->state_;
    (void)made.in(*node_->graph);
  }
  return made;
}

Module::Scope::Scope(const Module& module, const Graph& graph, Where at)
    : graph_(detail::state_of(graph)), at_(*graph_, [&] {
        // Without a file, each op has its own line.
        const Location& now = graph_->location();
        const std::string_view path = module.path().empty() ? now.scope() : std::string_view(module.path());
        return now.file().empty() ? Location("", static_cast<int>(at.line()), path)
                                  : Location(now.file(), now.line(), path);
      }()) {
  running_calls.push_back(graph_);
}

Module::Scope::~Scope() { running_calls.pop_back(); }

void Module::remove(const Module& child) const {
  for (const Parameter& parameter : child.parameters()) node_->taken->erase(parameter.name());
  std::erase_if(node_->children, [&](const Module& each) { return each.node_ == child.node_; });
}

const std::shared_ptr<LinearState>& Module::linear_state() const { return node_->linear; }
void Module::set_linear_state(std::shared_ptr<LinearState> state) const { node_->linear = std::move(state); }

const std::string& Module::path() const { return node_->path; }
const std::string& Module::name() const { return node_->name; }
const std::string& Module::kind() const { return node_->kind; }
DType Module::dtype() const { return node_->dtype; }
const std::vector<Module>& Module::children() const { return node_->children; }
const std::vector<Parameter>& Module::own_parameters() const { return node_->parameters; }

std::vector<Parameter> Module::parameters() const {
  std::vector<Parameter> all;
  collect(*this, all);
  return all;
}

Parameter Module::parameter(std::string_view name) const {
  const std::vector<Parameter> all = parameters();
  std::vector<std::string_view> names;
  for (const Parameter& parameter : all) {
    if (parameter.name() == name) return parameter;
    names.push_back(parameter.name());
  }
  const std::string near = did_you_mean(name, names);
  throw UserError(fmt::format("the {} has no parameter named {}", kind(), name), "parameter_unknown",
                  near.empty() ? "print_tree() shows their names" : near);
}

void Module::freeze(bool frozen) const {
  for (const Parameter& parameter : parameters()) parameter.freeze(frozen);
}

void Module::set_group(std::string_view group) const {
  for (const Parameter& parameter : parameters()) parameter.set_group(group);
}

std::int64_t Module::count() const {
  std::int64_t sum = 0;
  for (const Parameter& parameter : parameters()) sum += parameter.shape().numel().evaluate({});
  return sum;
}

std::vector<Initializer> Module::initializers() const {
  std::vector<Initializer> all;
  for (const Parameter& parameter : parameters()) all.push_back({parameter.name(), parameter.init()});
  return all;
}

Tensors Module::initial_values(std::uint64_t seed) const {
  Tensors values;
  for (const Parameter& parameter : parameters())
    values.emplace(parameter.name(), initial_value(parameter.init(), parameter.name(), parameter.dtype(),
                                                   parameter.shape().evaluate({}), seed));
  return values;
}

ParameterFilter trainable(const Module& module) {
  return filter(module, [](const Parameter& parameter) { return !parameter.is_frozen(); });
}

ParameterFilter in_group(const Module& module, std::string_view group) {
  return filter(module, [&](const Parameter& parameter) { return parameter.group() == group; });
}

std::function<bool(std::string_view)> parameters_of(const Module& module) {
  std::set<std::string, std::less<>> names;
  for (const Parameter& parameter : module.parameters()) {
    names.insert(parameter.name());
    if (parameter.is_quantized()) names.insert(parameter.scales_name());
  }
  return [names = std::move(names)](std::string_view name) { return names.contains(name); };
}

}  // namespace lathe::nn
