#include <memory>

#include "ir/ops/functional/functional_composites.h"
#include "ir/ops/loop_parts.h"
#include "ir/ops/primitives/primitives.h"
#include "tests/fuzz/graph_maker.h"

namespace lathe::fuzz {

using namespace ir;

namespace {

/// The shape of [n, ..] without n.
Shape row_shape(const Value& a) { return Shape(std::vector<Dim>(a.shape().begin() + 1, a.shape().end())); }

/// A builder that outlives the bodies built in it.
std::shared_ptr<GraphBuilder> unowned(GraphBuilder& builder) { return {std::shared_ptr<void>(), &builder}; }

}  // namespace

/// The next value of a carry, bounded, from the element of the iteration and values of the graph around the loop.
Value GraphMaker::next_carry(const Value& h, const Value& x, const LoopCaptures& captured) {
  Value next = mul(h, 0.5);
  switch (below(5)) {
    case 0: next = add(next, mul(tanh(x), 0.5)); break;
    case 1: next = tanh(add(h, x)); break;
    case 2: next = add(mul(next, sigmoid(x)), 0.125); break;
    case 3:
      if (h.rank() > 0) next = softmax(add(h, tanh(x)), any_dim(h));
      break;
    default:
      if (h.rank() > 0) next = add(next, tanh(sum(mul(h, x), {any_dim(h)}, true)));
  }
  if (captured.weight) next = add(mul(next, 0.5), tanh(mul(matmul(h, *captured.weight), 0.3)));
  if (captured.addend) next = tanh(add(next, *captured.addend));
  return next;
}

/// A loop in the body of a loop: the rows of x change the first row of h, which all rows get a part of.
Value GraphMaker::inner_loop(GraphBuilder& around, const Value& h, const Value& x) {
  const auto inner = std::make_shared<GraphBuilder>("inner", unowned(around));
  const Value first = full(around, row_shape(x), 0.25, x.dtype());
  const Value row = inner->argument(ops::state, "row", first.dtype(), first.shape());
  const Value element = inner->argument(ops::input, "element", first.dtype(), first.shape());
  const Value next = next_carry(row, element, {});
  inner->update(row, next);
  inner->output("rows", tanh(add(row, element)));
  const std::vector<Value> results = loop(around, {.body = Body(inner->close_body()),
                                                   .trips = x.shape()[0],
                                                   .carries = {first},
                                                   .sequences = {x},
                                                   .reverse = one_in(2)});
  if (one_in(3)) return mul(add(h, tanh(sum(results[1], {0}, true))), 0.5);  // a kernel that reads only the stack
  return mul(add(h, one_in(2) ? results[1] : results[0]), 0.5);
}

/// Returns values of the graph, and a second sequence, for the body of a loop over `a`.
GraphMaker::LoopCaptures GraphMaker::loop_captures(const Value& a, const Shape& rest) {
  LoopCaptures found;
  if (one_in(2))
    found.addend =
        pick([&](const Item& i) { return i.value.dtype() == a.dtype() && broadcasts_into(i.value.shape(), rest); });
  if (rest.rank() > 0 && one_in(2))
    found.weight = pick([&](const Item& i) {
      const Dim last = rest[rest.rank() - 1];
      return i.value.dtype() == a.dtype() && i.value.shape() == Shape{last, last};
    });
  if (one_in(2))
    found.sequence = pick([&](const Item& i) {
      return i.value.dtype() == a.dtype() && i.value.rank() > 0 && i.value.shape()[0] == a.shape()[0] &&
             broadcasts_into(row_shape(i.value), rest);
    });
  return found;
}

/// A scan of `a` along its first dim, and sometimes of a second sequence; its other results join the pool.
GraphMaker::Maybe GraphMaker::loop_over(const Value& a) {
  if (a.rank() == 0) return std::nullopt;
  const Shape rest = row_shape(a);
  const Maybe given = pick([&](const Item& i) { return i.value.dtype() == a.dtype() && i.value.shape() == rest; });
  const LoopCaptures captured = loop_captures(a, rest);
  const auto body = std::make_shared<GraphBuilder>("step", unowned(builder_));
  const Value first = given && one_in(2) ? tanh(*given) : full(builder_, rest, 0.25, a.dtype());
  std::vector<Value> sequences = {a};
  // The arguments have the order of the operands, and precede the values that the body captures.
  const Value h = body->argument(ops::state, "h", a.dtype(), rest);
  const Value x = body->argument(ops::input, "x", a.dtype(), rest);
  Maybe second;
  if (captured.sequence) {
    second = body->argument(ops::input, "z", a.dtype(), row_shape(*captured.sequence));
    sequences.push_back(*captured.sequence);
  }
  Value next = next_carry(h, x, captured);
  if (second) next = tanh(add(next, *second));
  if (rest.rank() > 0 && one_in(4)) next = inner_loop(*body, next, x);
  body->update(h, next);
  if (!one_in(4)) body->output("all", one_in(2) ? next : mul(tanh(x), h));
  if (rest.rank() > 0 && one_in(3)) body->output("sums", tanh(sum(next, {any_dim(next)}, false)));
  LoopParts parts{.body = Body(body->close_body()),
                  .trips = a.shape()[0],
                  .carries = {first},
                  .sequences = sequences,
                  .reverse = one_in(3)};
  for (const ValueId id : body->captured()) parts.invariants.emplace_back(builder_, id);
  const std::vector<Value> results = loop(builder_, parts);
  for (std::size_t r = 0; r + 1 < results.size(); ++r) keep(results[r]);
  return results.back();
}

}  // namespace lathe::fuzz
