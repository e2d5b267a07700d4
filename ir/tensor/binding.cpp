#include "ir/tensor/binding.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "ir/support/error.h"
#include "ir/support/nearest.h"
#include "ir/tensor/loop_views.h"
#include "ir/tensor/op/op.h"

namespace lathe::ir {

namespace {

std::string to_string(const ArgumentShape& given) {
  return fmt::format("{}[{}]", name(given.dtype), fmt::join(given.sizes, ", "));
}

/// One size of an argument, with its dim in the signature.
struct SizedDim {
  const Node* argument;
  int dim;
  std::int64_t size;
  const Dim& declared() const { return argument->type.shape[dim]; }
  std::string to_string() const { return fmt::format("dim {} of {}", dim, argument->name); }
};

/// Suggests missing arguments that the caller may have meant by `name`.
std::string offer(const Graph& graph, const std::map<std::string, ArgumentShape>& arguments, std::string_view name) {
  std::vector<std::string_view> missing, inputs;
  for (const ValueId id : graph.arguments()) {
    const Node& node = graph[id];
    if (!arguments.contains(node.name)) missing.push_back(node.name);
    if (node.op->name.value == "input") inputs.push_back(node.name);
  }
  const std::string better = did_you_mean(name, missing);
  return better.empty() ? fmt::format("its inputs are: {}", list_of(inputs)) : better;
}

void check_names(const Graph& graph, const std::map<std::string, ArgumentShape>& arguments) {
  std::set<std::string_view> known;
  for (const ValueId id : graph.arguments()) known.insert(graph[id].name);
  for (const auto& [name, given] : arguments)
    if (!known.contains(name))
      throw UserError(fmt::format("@{} has no argument {}", graph.name, name), "argument_unknown",
                      offer(graph, arguments, name));
  for (const ValueId id : graph.arguments())
    if (!arguments.contains(graph[id].name))
      throw UserError(fmt::format("the argument {} of @{} is missing", graph[id].name, graph.name),
                      "argument_missing", fmt::format("it is {}", graph[id].type.to_string()));
}

/// Checks dtypes, ranks and constant sizes; returns every dim with its size.
std::vector<SizedDim> sized_dims(const Graph& graph, const std::map<std::string, ArgumentShape>& arguments) {
  std::vector<SizedDim> sized;
  for (const ValueId id : graph.arguments()) {
    const Node& node = graph[id];
    const ArgumentShape& given = arguments.at(node.name);
    const auto fail = [&](std::string_view label, std::string_view hint) {
      throw UserError(fmt::format("{} must be {}, not {}", node.name, node.type.to_string(), to_string(given)), label,
                      hint);
    };
    if (given.dtype != node.type.dtype) fail("argument_dtype", "convert the tensor to the dtype of the signature");
    if (static_cast<int>(given.sizes.size()) != node.type.rank())
      fail("argument_rank", fmt::format("give a tensor of rank {}", node.type.rank()));
    for (int d = 0; d < node.type.rank(); ++d) {
      const std::int64_t size = given.sizes[d];
      const auto number = node.type.shape[d].value();
      if (number && *number != size)
        fail("argument_shape", fmt::format("dim {} has size {} instead of {}", d, size, *number));
      if (!number) sized.push_back({&node, d, size});
    }
  }
  return sized;
}

/// The bindings found so far, and their origin.
class Solver {
 public:
  explicit Solver(const DimBindings& given) : bindings_(given) {
    for (const auto& [name, value] : given) found_in_[name] = "the caller's bindings";
  }

  /// Uses a size whose dim has at most one unbound name; returns false if it has more.
  bool use(const SizedDim& sized) {
    std::vector<std::string> open;
    for (const std::string& name : sized.declared().unknowns())
      if (!bindings_.contains(name)) open.push_back(name);
    if (open.empty()) {
      check(sized);
      return true;
    }
    return open.size() == 1 && solve(sized, open.front());
  }

  const DimBindings& bindings() const { return bindings_; }

 private:
  /// Returns the reason for an expected size: "n_seq is 3 in dim 1 of x".
  std::string reasons(const Dim& declared) const {
    std::vector<std::string> parts;
    for (const std::string& name : declared.unknowns())
      parts.push_back(fmt::format("{} is {} in {}", name, bindings_.at(name), found_in_.at(name)));
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  void check(const SizedDim& sized) const {
    const std::int64_t expected = sized.declared().evaluate(bindings_);
    if (expected == sized.size) return;
    const std::string what = sized.declared().unnamed().to_string();
    throw UserError(
        fmt::format("{} is {} in {}, but {}{}", what, sized.size, sized.to_string(), reasons(sized.declared()),
                    what == sized.declared().unknowns().front() ? "" : fmt::format(", which makes it {}", expected)),
        "dim_conflict", "one name means one size");
  }

  /// Solves a size that is linear in its only unbound dim: size = offset + scale * name.
  bool solve(const SizedDim& sized, const std::string& name) {
    for (const auto& term : sized.declared().terms())
      for (const auto& [factor, power] : term.monomial)
        if (factor == name && power > 1) return false;
    const auto at = [&](std::int64_t value) {
      DimBindings trial = bindings_;
      trial[name] = value;
      return sized.declared().evaluate(trial);
    };
    const std::int64_t offset = at(0), scale = at(1) - offset;
    if (scale == 0) return false;
    const std::int64_t value = (sized.size - offset) / scale;
    if (value < 0 || at(value) != sized.size)
      throw UserError(fmt::format("{} is {} in {}, which no size {} gives", sized.declared().unnamed().to_string(),
                                  sized.size, sized.to_string(), name),
                      "dim_conflict",
                      offset == 0 && scale > 1 ? fmt::format("give a multiple of {}", scale)
                                               : "sizes are whole numbers of zero or more");
    bindings_[name] = value;
    found_in_[name] = sized.to_string();
    return true;
  }

  DimBindings bindings_;
  std::map<std::string, std::string> found_in_;
};

bool mentions(const Dim& dim, std::string_view name) {
  const std::vector<std::string> unknowns = dim.unknowns();
  return std::find(unknowns.begin(), unknowns.end(), name) != unknowns.end();
}

/// Returns a note such as ": dim 0 of x: f32[B*T, 4] does not determine it alone", or an empty string.
std::string mention_of(const Graph& graph, std::string_view name) {
  for (const ValueId id : graph.arguments()) {
    const Node& node = graph[id];
    for (int d = 0; d < node.type.rank(); ++d)
      if (mentions(node.type.shape[d], name))
        return fmt::format(": dim {} of {}: {} does not determine it alone", d, node.name, node.type.to_string());
  }
  return "";
}

/// Calls f(node, dim) for each dim of the values of a graph, for the iterations of its loops, and in their bodies.
template <class F>
void for_dims(const Graph& graph, const F& f) {
  for (const Node& node : graph.nodes) {
    for (const Dim& dim : node.type.shape) f(node, dim);
    if (!is_loop(node)) continue;
    f(node, loop_trips(node));
    for_dims(loop_body(node).graph(), f);
  }
}

/// Checks that every symbolic dim is bound.
void check_bound(const Graph& graph, const DimBindings& bindings) {
  for_dims(graph, [&](const Node& node, const Dim& dim) {
    for (const std::string& name : dim.unknowns())
      if (!bindings.contains(name))
        throw UserError(node.loc, node.op->name.value,
                        fmt::format("no argument gives the size {} in {}{}", name, node.type.to_string(),
                                    mention_of(graph, name)),
                        "dim_unbound",
                        fmt::format("give it with the arguments, as in {{{{\"{}\", 8}}}}, or make it a dim of an "
                                    "argument by itself",
                                    name));
  });
}

/// Returns whether the size of this dim determines its only unknown not in `known`: the dim must be linear in it.
/// Sets `name` to that unknown.
bool determines(const Dim& dim, const std::set<std::string>& known, std::string& name) {
  std::vector<std::string> open;
  for (const std::string& unknown : dim.unknowns())
    if (!known.contains(unknown)) open.push_back(unknown);
  if (open.size() != 1) return false;
  name = open.front();
  for (const auto& term : dim.terms())
    for (const auto& [factor, power] : term.monomial)
      if (factor == name && power > 1) return false;
  return true;
}

}  // namespace

DimBindings bind_dims(const Graph& graph, const std::map<std::string, ArgumentShape>& arguments,
                      const DimBindings& given) {
  check_names(graph, arguments);
  std::vector<SizedDim> open = sized_dims(graph, arguments);
  Solver solver(given);
  // Uses sizes with a single unknown first, then those that become solvable, until there is no progress.
  for (bool progress = true; progress && !open.empty();) {
    std::vector<SizedDim> rest;
    for (const SizedDim& sized : open)
      if (!solver.use(sized)) rest.push_back(sized);
    progress = rest.size() < open.size();
    open = std::move(rest);
  }
  check_bound(graph, solver.bindings());
  check_dims(graph, solver.bindings());
  return solver.bindings();
}

std::vector<std::string> unbound_dims(const Graph& graph, const DimBindings& bindings) {
  std::set<std::string> missing;
  for_dims(graph, [&](const Node&, const Dim& dim) {
    for (const std::string& name : dim.unknowns())
      if (!bindings.contains(name)) missing.insert(name);
  });
  return {missing.begin(), missing.end()};
}

std::vector<std::string> dims_without_argument(const Graph& graph) {
  std::set<std::string> known;
  std::string name;
  for (bool progress = true; progress;) {
    progress = false;
    for (const ValueId id : graph.arguments())
      for (const Dim& dim : graph[id].type.shape)
        if (determines(dim, known, name)) known.insert(name), progress = true;
  }
  DimBindings found;
  for (const std::string& each : known) found[each] = 0;
  return unbound_dims(graph, found);
}

void check_dims(const Graph& graph, const DimBindings& bindings) {
  for (const DimCheck& check : graph.checks) {
    const std::int64_t left = check.left.evaluate(bindings), right = check.right.evaluate(bindings);
    if (check.relation == DimCheck::Relation::equal ? left == right : left <= right) continue;
    std::set<std::string> unknowns;
    for (const Dim* dim : {&check.left, &check.right})
      for (const std::string& name : dim->unknowns()) unknowns.insert(name);
    std::vector<std::string> values;
    for (const std::string& name : unknowns)
      values.push_back(fmt::format("{}={}", name, bindings.find(name)->second));
    const std::string_view relation = check.relation == DimCheck::Relation::equal ? "differs from" : "is more than";
    const std::string sizes = values.empty() ? "" : fmt::format("in this run {}, so ", fmt::join(values, ", "));
    throw UserError(check.loc, check.op, check.message, check.label,
                    fmt::format("{}{} {} {}", sizes, left, relation, right));
  }
}

}  // namespace lathe::ir
