#include "ir/ops/loop_parts.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/ops/composites/composites.h"
#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/ops/rules/operand_rules.h"
#include "ir/tensor/analysis/ancestors.h"
#include "ir/tensor/op/op.h"

namespace lathe::ir::ops {

namespace {

/// Checks that an operand has the type of an argument of the body; that of a sequence without its first dim.
void require_operand(const InferContext& ctx, int operand, const Node& argument, bool is_sequence) {
  const TensorType &given = ctx.operand(operand), &wanted = argument.type;
  const int lead = is_sequence ? 1 : 0;
  const std::string what = fmt::format("{} of the body is {}, and {} is given", argument.name, wanted.to_string(),
                                       rules::describe(ctx, operand));
  ctx.require(given.dtype == wanted.dtype && given.rank() == wanted.rank() + lead, "loop_operand", what,
              is_sequence ? "a sequence has one more dim, of the iterations, in front" : "their types must be equal");
  if (is_sequence)
    ctx.require_equal(given.shape[0], ctx.attr<Dim>("trips"), "loop_operand",
                      fmt::format("{} has {} elements for {} iterations", argument.name, given.shape[0].to_string(),
                                  ctx.attr<Dim>("trips").to_string()),
                      "all sequences have one element for each iteration");
  for (int d = 0; d < wanted.rank(); ++d)
    ctx.require_equal(given.shape[d + lead], wanted.shape[d], "loop_operand", what, "their sizes must be equal");
}

/// Whether a node draws random numbers from a state that is the same in all iterations.
bool draws_alike(const Graph& body, const Node& node, std::int64_t sequences) {
  if (node.op != &ops::random_uniform && node.op != &ops::dropout) return false;
  const std::vector<ValueId> arguments = body.arguments();
  const std::size_t changing = body.updates.size() + static_cast<std::size_t>(sequences);
  const ValueId state = node.operands[node.op == &ops::dropout ? 1 : 0];
  const auto found = ancestors(body, state, [](ValueId) { return true; });
  return std::none_of(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(changing),
                      [&](ValueId argument) { return std::ranges::find(found, argument) != found.end(); });
}

/// Checks the numbers and kinds of the body's arguments, and its updates.
void require_body(const InferContext& ctx, const Graph& body, std::int64_t sequences) {
  const std::vector<ValueId> arguments = body.arguments();
  const auto carries = static_cast<std::int64_t>(body.updates.size());
  ctx.require(static_cast<std::size_t>(ctx.arity()) == arguments.size(), "loop_body",
              fmt::format("the body has {} arguments, and {} operands are given", arguments.size(), ctx.arity()),
              "give an operand for each argument: carries, then sequences, then the others");
  ctx.require(
      sequences >= 0 && carries + sequences <= ctx.arity(), "loop_body",
      fmt::format("{} operands are given for carries ({}) and sequences ({})", ctx.arity(), carries, sequences),
      "`sequences` counts the operands after the carries that have a dim of iterations");
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool is_carry = static_cast<std::int64_t>(i) < carries;
    const Node& argument = body[arguments[i]];
    ctx.require(
        argument.op == (is_carry ? &ops::state : &ops::input), "loop_body",
        fmt::format("argument {} of the body, {}, must be {}", i, argument.name, is_carry ? "a state" : "an input"),
        "the carries are states, which come first and are updated; all other arguments are inputs");
    const auto updates = [&](const Update& update) { return update.state == arguments[i]; };
    ctx.require(!is_carry || std::ranges::any_of(body.updates, updates), "loop_body",
                fmt::format("the carry {} is not updated", argument.name), "write: update %carry <- %next");
  }
  for (const Node& node : body.nodes) {
    const auto* custom = node.op->as<Custom>();
    ctx.require(!custom || custom->kind != CustomKind::collective, "loop_body",
                fmt::format("{} is a collective", node.op->name.value), "communicate before or after the loop");
    ctx.require(
        !draws_alike(body, node, sequences), "loop_body",
        fmt::format("{} at {} would draw the same numbers in each iteration", node.op->name.value, node.loc.place()),
        "draw from a state that is a sequence or a carry");
  }
}

TensorType infer_loop(const InferContext& ctx) {
  const Graph& body = ctx.attr<Body>("body").graph();
  const auto sequences = ctx.attr<std::int64_t>("sequences");
  const Dim& trips = ctx.attr<Dim>("trips");
  require_body(ctx, body, sequences);
  ctx.require(!trips.value() || *trips.value() >= 0, "dim_negative",
              fmt::format("the loop has {} iterations", trips.to_string()), "sizes are zero or more");
  const std::vector<ValueId> arguments = body.arguments();
  const auto carries = static_cast<int>(body.updates.size());
  for (int i = 0; i < ctx.arity(); ++i)
    require_operand(ctx, i, body[arguments[static_cast<std::size_t>(i)]],
                    i >= carries && i < carries + static_cast<int>(sequences));
  for (const DimCheck& check : body.checks) ctx.add_check(check);

  const auto result = ctx.attr<std::int64_t>("result");
  const auto results = carries + static_cast<std::int64_t>(body.outputs.size());
  ctx.require(result >= 0 && result < results, "loop_body",
              fmt::format("there is no result {}: the loop has {}", result, results),
              "the results are the last values of the carries, then the outputs of the body");
  if (result < carries) {
    const TensorType& type = body[arguments[static_cast<std::size_t>(result)]].type;
    return TensorType::contiguous(type.dtype, type.shape);
  }
  const TensorType& type = body[body.outputs[static_cast<std::size_t>(result - carries)].value].type;
  Shape shape{trips};
  for (const Dim& dim : type.shape) shape.push_back(dim);
  return TensorType::contiguous(type.dtype, shape);
}

/// h[t] = tanh(h[t-1] w) + x[t]; outputs h[t] times 2.
Body sample_body(std::int64_t rows, std::int64_t columns) {
  GraphBuilder b("step");
  const Value h = b.argument(ops::state, "h", f64, {rows, columns});
  const Value x = b.argument(ops::input, "x", f64, {rows, columns});
  const Value w = b.argument(ops::input, "w", f64, {columns, columns});
  const Value next = ir::add(ir::tanh(ir::contract(h, w, "ij,jk->ik")), x);
  b.output("y", ir::mul(next, 2.0));
  b.update(h, next);
  return Body(b.finish());
}

std::vector<Sample> loop_samples() {
  std::vector<Sample> samples;
  for (const std::int64_t trips : {3, 1, 0})
    for (const std::int64_t result : {0, 1})
      samples.push_back({.operands = {{{2, 3}, f64}, {{trips, 2, 3}, f64}, {{3, 3}, f64}},
                         .attrs = {{"body", sample_body(2, 3)},
                                   {"trips", Dim(trips)},
                                   {"sequences", std::int64_t{1}},
                                   {"result", result},
                                   {"reverse", trips == 3}}});
  return samples;
}

constexpr AttrSpec loop_attrs[] = {
    {"body", AttrKind::body, true, {}, "the graph that each iteration runs"},
    {"trips", AttrKind::dim, true, {}, "the number of iterations"},
    {"sequences", AttrKind::integer, false, std::int64_t{0}, "the number of operands with a dim of iterations"},
    {"result", AttrKind::integer, false, std::int64_t{0},
     "the carry's last value, or after them the output, stacked"},
    {"reverse", AttrKind::boolean, false, false, "the first iteration is that of the last index"}};
constexpr std::string_view loop_labels[] = {"loop_body", "loop_operand", "dim_negative"};

}  // namespace

constinit const Op loop = {
    .name = "loop",
    .doc = "runs a graph `trips` times over carried values, slices of sequences, and values that do not change",
    .arity = Arity{0, -1},
    .attrs = loop_attrs,
    .labels = loop_labels,
    .infer = infer_loop,
    .meaning = Loop{},
    .precision = MixedPrecision::f32,  // the body is converted by itself
    .gradient = ThroughBody{},
    .samples = loop_samples,
};

}  // namespace lathe::ir::ops
