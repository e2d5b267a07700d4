#include "ir/tensor/builder.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/support/hash.h"
#include "ir/tensor/constants.h"
#include "ir/tensor/op/inferred_types.h"
#include "ir/tensor/op/owned_op.h"

namespace lathe::ir {

namespace {

std::string_view kind_name(AttrKind kind) {
  switch (kind) {
    case AttrKind::boolean: return "true or false";
    case AttrKind::integer: return "an integer";
    case AttrKind::real: return "a number";
    case AttrKind::text: return "a string";
    case AttrKind::dtype: return "a dtype";
    case AttrKind::dim: return "a dim";
    case AttrKind::integers: return "a list of integers";
    case AttrKind::reals: return "a list of numbers";
    case AttrKind::shape: return "a shape";
    case AttrKind::number: return "a number";
    case AttrKind::numbers: return "a list of numbers";
    case AttrKind::body: return "the body of a loop";
  }
  throw InternalError("an attribute kind out of range");
}

std::optional<Attribute> fallback(const AttrSpec& spec) {
  if (const auto* v = std::get_if<bool>(&spec.fallback)) return Attribute(*v);
  if (const auto* v = std::get_if<std::int64_t>(&spec.fallback)) return Attribute(*v);
  if (const auto* v = std::get_if<double>(&spec.fallback)) return Attribute(*v);
  if (const auto* v = std::get_if<std::string_view>(&spec.fallback)) return Attribute(std::string(*v));
  return std::nullopt;
}

/// Converts a real or an integer to Number if a number attribute is expected.
Attribute of_kind(AttrKind kind, const Attribute& given) {
  if (kind == AttrKind::number) {
    if (const auto* real = std::get_if<double>(&given)) return Number(*real);
    if (const auto* integer = std::get_if<std::int64_t>(&given)) return Number(*integer);
  } else if (kind == AttrKind::numbers) {
    if (const auto* reals = std::get_if<std::vector<double>>(&given)) return NumberList(*reals);
    if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&given)) return NumberList(*integers);
  }
  return given;
}

/// Returns the attributes in schema order with defaults; checks their kinds.
Attributes conform(const Op& op, const Attributes& given, const Location& loc) {
  const std::string_view op_name = op.name.value;
  Attributes result;
  for (const AttrSpec& spec : op.attrs.value) {
    const Attribute* found = given.find(spec.name);
    if (!found) {
      if (spec.required)
        throw UserError(loc, op_name, fmt::format("the attribute {} is missing", spec.name), "op_attribute",
                        fmt::format("give {}: {}", spec.name, spec.doc));
      if (auto other = fallback(spec)) result.set(spec.name, of_kind(spec.kind, *other));
      continue;
    }
    Attribute value = of_kind(spec.kind, *found);
    if (static_cast<AttrKind>(value.index()) != spec.kind)
      throw UserError(loc, op_name, fmt::format("the attribute {} must be {}", spec.name, kind_name(spec.kind)),
                      "op_attribute", spec.doc);
    result.set(spec.name, std::move(value));
  }
  for (const auto& [name, value] : given.entries())
    if (!result.find(name))
      throw UserError(loc, op_name, fmt::format("there is no attribute {}", name), "op_attribute",
                      "docs/ops.md lists the attributes of each op");
  return result;
}

void check_arity(const Op& op, std::size_t given, const Location& loc) {
  const Arity arity = op.arity;
  const int n = static_cast<int>(given);
  if (n >= arity.min && (arity.max < 0 || n <= arity.max)) return;
  const auto wanted = arity.max == arity.min ? fmt::format("{}", arity.min)
                      : arity.max < 0        ? fmt::format("at least {}", arity.min)
                                             : fmt::format("{} to {}", arity.min, arity.max);
  throw UserError(loc, op.name.value, fmt::format("{} operands given, {} wanted", n, wanted), "op_arity",
                  op.doc.value);
}

std::size_t hash_of(const Node& node) {
  std::size_t hash = mix_hash(std::hash<const void*>{}(node.op), node.attrs.hash());
  for (const ValueId id : node.operands) hash = mix_hash(hash, static_cast<std::size_t>(id.index));
  return hash;
}

}  // namespace

const Node& Value::node() const { return builder_->graph()[id_]; }

GraphBuilder::GraphBuilder(std::string_view name) : inferred_(std::make_unique<InferredTypes>()) {
  graph_.name = name;
}

GraphBuilder::GraphBuilder(Graph graph) : graph_(std::move(graph)), inferred_(std::make_unique<InferredTypes>()) {
  for (const ValueId id : all_values(graph_)) {
    const Node& node = graph_[id];
    if (node.op->as<Argument>())
      arguments_.add(std::hash<std::string_view>{}(node.name), {}, id);
    else
      pure_.add(hash_of(node), node.operands, id);
    reserve_stream(node);
    require_one_record(*node.op);
  }
  for (const Update& update : graph_.updates) is_first_update(update.state);
}

GraphBuilder::~GraphBuilder() = default;

GraphBuilder::GraphBuilder(std::string_view name, std::shared_ptr<GraphBuilder> outer) : GraphBuilder(name) {
  location_ = outer->location_;
  outer_ = std::move(outer);
}

bool GraphBuilder::is_inside(const GraphBuilder& other) const {
  const GraphBuilder* builder = outer_.get();
  while (builder && builder != &other) builder = builder->outer_.get();
  return builder != nullptr;
}

GraphBuilder& GraphBuilder::innermost(std::span<const Value> operands) {
  GraphBuilder* found = this;
  for (const Value& operand : operands)
    if (GraphBuilder& other = operand.builder(); !other.finished_ && other.is_inside(*found)) found = &other;
  return *found;
}

Value GraphBuilder::own(std::string_view op, const Value& value) {
  if (&value.builder() == this) return value;
  if (!is_inside(value.builder())) throw_other_graph(op, value);
  return capture(outer_->own(op, value));
}

/// `value` is one of outer_.
Value GraphBuilder::capture(const Value& value) {
  const Node& node = value.node();
  if (!node.op->as<Argument>() && node.operands.empty()) return copy(node, {});
  if (node.op->as<View>() && uniform_value(outer_->graph_, value.id())) {
    const Value number = capture(Value(*outer_, node.operands[0]));
    return copy(node, {&number, 1});
  }
  const auto known = std::ranges::find(captured_, value.id());
  if (known != captured_.end()) return {*this, inputs_[static_cast<std::size_t>(known - captured_.begin())]};
  const Op* input = find_op("input");
  LATHE_ASSERT(input);
  const At at(*this, node.loc);
  const std::string name = free_name(node.name.empty() ? std::string(node.op->name.value) : node.name);
  const TensorType type = node.type;  // adding nodes may move it
  const Value made = argument(*input, name, type.dtype, type.shape);
  captured_.push_back(value.id());
  inputs_.push_back(made.id());
  return made;
}

std::string GraphBuilder::free_name(std::string name) const {
  if (!argument_named(name).valid()) return name;
  for (int number = 2;; ++number)
    if (std::string numbered = fmt::format("{}.{}", name, number); !argument_named(numbered).valid()) return numbered;
}

void GraphBuilder::throw_other_graph(std::string_view op, const Value& value) const {
  const Node& node = value.node();
  const std::string what = node.name.empty() ? fmt::format("the {}", node.op->name.value) : node.name;
  const GraphBuilder& other = value.builder();
  if (other.is_inside(*this))
    throw UserError(
        location_, op,
        fmt::format("{} ({}) belongs to one iteration of the loop @{}", what, node.loc.place(), other.graph().name),
        "op_other_graph", "return it from the body as an output, which stacks it over the iterations");
  const std::string& theirs = other.graph().name;
  const std::string where = theirs == graph_.name ? fmt::format("another graph, which is named @{} too", theirs)
                                                  : fmt::format("graph @{}, not to @{}", theirs, graph_.name);
  throw UserError(location_, op, fmt::format("{} ({}) belongs to {}", what, node.loc.place(), where),
                  "op_other_graph", "build all operands with one Graph");
}

/// Ensures that streams assigned later differ from this node's.
void GraphBuilder::reserve_stream(const Node& node) {
  if (const Attribute* stream = node.attrs.find("stream"))
    next_stream_ = std::max(next_stream_, std::get<std::int64_t>(*stream) + 1);
}

/// Graph text identifies ops by name, so a name must refer to one record per graph.
void GraphBuilder::require_one_record(const Op& op) {
  if (!op.owned) return;
  const Op& known = *owned_.emplace(op.name.value, &op).first->second;
  if (&known != &op)
    throw UserError(location_, op.name.value,
                    fmt::format("@{} has another op of this name, made at {}", graph_.name,
                                known.owned->definition().loc.place()),
                    "op_name", "make an op once and use it everywhere, or give it another name");
}

Value GraphBuilder::insert(Node node) {
  const ValueId id{graph_.size()};
  require_one_record(*node.op);
  if (!node.op->as<Argument>()) {
    const std::size_t hash = hash_of(node);
    // Also compare display names of dims: dumps distinguish a view to [h=8] from one to [8].
    const ValueId known = pure_.find(hash, node.operands, [&](ValueId candidate) {
      const Node& other = graph_[candidate];
      return other.op == node.op && other.operands == node.operands && other.attrs == node.attrs &&
             other.type.shape.looks_like(node.type.shape);
    });
    if (known.valid()) return {*this, known};
    pure_.add(hash, node.operands, id);
  }
  graph_.nodes.push_back(std::move(node));
  return {*this, id};
}

Value GraphBuilder::add(const Op& op, std::span<const Value> operands, Attributes attrs) {
  if (GraphBuilder& inner = innermost(operands); &inner != this) {
    const At at(inner, location_.known() ? location_ : inner.location_);
    return inner.add(op, operands, std::move(attrs));
  }
  if (finished_ && outer_ && !operands.empty()) {
    const At at(*outer_, location_);
    outer_->throw_other_graph(op.name.value, operands[0]);
  }
  check_arity(op, operands.size(), location_);
  Node node{.op = &op, .operands = {}, .attrs = std::move(attrs), .type = {}, .loc = location_, .name = {}};
  for (const Value& operand : operands) node.operands.push_back(own(op.name.value, operand).id());
  infer(node);
  return insert(std::move(node));
}

/// Sorts the attributes into schema order and infers the result type.
void GraphBuilder::infer(Node& node) {
  if (const auto* known = inferred_->find(graph_, *node.op, node.attrs, node.operands)) {
    node.attrs = known->attrs;
    node.type = known->type;
    return;
  }
  InferredTypes::Inferred made{
      .op = node.op, .given = node.attrs, .operands = {}, .attrs = {}, .type = {}, .checks = {}};
  node.attrs = made.attrs = conform(*node.op, node.attrs, node.loc);
  node.type = made.type =
      node.op->infer.value(InferContext(*node.op, graph_, node.operands, node.attrs, node.loc, made.checks));
  // Checks contain the node's location, so nodes with checks are not cached.
  if (made.checks.empty())
    inferred_->keep(graph_, node.operands, std::move(made));
  else
    add_checks(made.checks);
}

Value GraphBuilder::argument(const Op& op, std::string_view name, DType dtype, const Shape& shape) {
  return argument(op, name, argument_type(dtype, shape));
}

/// Returns a row-major type. The weights of many layers share a few types.
TensorType GraphBuilder::argument_type(DType dtype, const Shape& shape) {
  constexpr std::size_t most = 64;  // limit of the linear search
  for (const TensorType& known : argument_types_)
    if (known.dtype == dtype && known.shape.looks_like(shape)) return known;
  TensorType type = TensorType::contiguous(dtype, shape);
  if (argument_types_.size() < most) argument_types_.push_back(type);
  return type;
}

ValueId GraphBuilder::argument_named(std::string_view name) const {
  return arguments_.find(std::hash<std::string_view>{}(name), {},
                         [&](ValueId id) { return graph_[id].name == name; });
}

Value GraphBuilder::argument(const Op& op, std::string_view name, TensorType type) {
  if (name.empty() || argument_named(name).valid())
    throw UserError(location_, op.name.value,
                    name.empty() ? std::string("an argument needs a name")
                                 : fmt::format("the graph @{} has an argument named {} already", graph_.name, name),
                    "argument_name", "give each input, parameter and state a name of its own");
  for (const Dim& dim : type.shape)
    if (dim.value().value_or(0) < 0)
      throw UserError(location_, op.name.value, fmt::format("{} has the negative size {}", name, dim.to_string()),
                      "dim_negative", "sizes are zero or more");
  const Value value = insert(
      {.op = &op, .operands = {}, .attrs = {}, .type = std::move(type), .loc = location_, .name = std::string(name)});
  arguments_.add(std::hash<std::string_view>{}(name), {}, value.id());
  return value;
}

std::optional<Value> GraphBuilder::find_argument(std::string_view name) {
  const ValueId found = argument_named(name);
  return found.valid() ? std::optional(Value(*this, found)) : std::nullopt;
}

void GraphBuilder::output(std::string_view name, const Value& value) {
  const Value result = own("output", value);
  for (const Output& output : graph_.outputs)
    if (output.name == name)
      throw UserError(location_, "output", fmt::format("there is an output named {} already", name), "output_name",
                      "give each output a name of its own");
  graph_.outputs.push_back({std::string(name), result.id()});
}

/// Records an update of a state; returns false if it is updated already.
bool GraphBuilder::is_first_update(ValueId state) {
  if (!updated_.contains(state)) updated_.grow(graph_);
  const bool is_first = !updated_[state];
  updated_[state] = true;
  return is_first;
}

void GraphBuilder::update(const Value& given_state, const Value& given) {
  const Value state = own("update", given_state), value = own("update", given);
  const Node& target = state.node();
  if (!target.op->as<Argument>() || target.op->name.value == "input")
    throw UserError(location_, "update", "only a parameter or a state can be updated", "update_target",
                    "declare it with parameter() or state()");
  if (target.type.dtype != value.dtype() || target.type.shape != value.shape())
    throw UserError(
        location_, "update",
        fmt::format("{} is {}, its new value {}", target.name, target.type.to_string(), value.type().to_string()),
        "update_type", "an update keeps dtype and shape");
  if (!is_first_update(state.id()))
    throw UserError(location_, "update", fmt::format("{} is updated twice", target.name), "update_twice",
                    "combine the two updates into one");
  graph_.updates.push_back({state.id(), value.id()});
}

Value GraphBuilder::copy(const Node& node, std::span<const Value> operands) {
  const At at(*this, node.loc);
  if (node.op->as<Argument>())
    return node.type.is_row_major() ? argument(*node.op, node.name, node.type)
                                    : argument(*node.op, node.name, node.type.dtype, node.type.shape);
  reserve_stream(node);
  const Value value = add(*node.op, operands, node.attrs);
  set_name(value, node.name);
  return value;
}

Value GraphBuilder::copy_as_typed(const Node& node, std::span<const Value> operands) {
  if (node.op->as<Argument>()) return copy(node, operands);
  reserve_stream(node);
  Node copied{.op = node.op, .operands = {}, .attrs = node.attrs, .type = node.type, .loc = node.loc, .name = {}};
  copied.operands.reserve(operands.size());
  for (const Value& operand : operands) copied.operands.push_back(operand.id());
  const Value value = insert(std::move(copied));
  set_name(value, node.name);
  return value;
}

void GraphBuilder::add_checks(std::span<const DimCheck> checks) {
  for (const DimCheck& check : checks)
    if (std::find(graph_.checks.begin(), graph_.checks.end(), check) == graph_.checks.end())
      graph_.checks.push_back(check);
}

void GraphBuilder::set_name(const Value& value, std::string_view name) {
  Node& node = graph_[value.id()];
  if (node.name.empty()) node.name = name;
}

Graph GraphBuilder::close_body() {
  finished_ = true;
  return graph_;
}

Graph GraphBuilder::finish() {
  inferred_ = std::make_unique<InferredTypes>();
  pure_.clear();
  arguments_.clear();
  updated_ = {};
  owned_.clear();
  return std::exchange(graph_, {});
}

}  // namespace lathe::ir
