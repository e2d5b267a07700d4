#include "frontend/ops/loops/loops.h"

#include <fmt/core.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "frontend/built.h"
#include "frontend/graph.h"
#include "frontend/ops/ops.h"
#include "ir/ops/functional/functional.h"
#include "ir/ops/loop_parts.h"
#include "ir/ops/primitives/primitives.h"
#include "passes/transforms/rebuild.h"

namespace lathe {

namespace {

/// While alive, the graph around all loops knows that a body is being built.
class OpenLoop {
 public:
  explicit OpenLoop(std::shared_ptr<ir::GraphBuilder> around) {
    while (around->outer()) around = around->outer();
    graph_ = std::dynamic_pointer_cast<detail::GraphState>(around);
    if (graph_) ++graph_->open_loops;
  }
  OpenLoop(const OpenLoop&) = delete;
  OpenLoop& operator=(const OpenLoop&) = delete;
  ~OpenLoop() {
    if (graph_) --graph_->open_loops;
  }

 private:
  std::shared_ptr<detail::GraphState> graph_;
};

/// A loop whose body is being built.
class LoopBuilder {
 public:
  LoopBuilder(const std::shared_ptr<ir::GraphBuilder>& around, const LoopOptions& options, const Where& at)
      : around_(*around),
        open_(around),
        body_(std::make_shared<detail::GraphState>(options.name, around)),
        reverse_(options.reverse),
        at_(at) {}

  std::vector<Tensor> add_carries(std::span<const Tensor> carries) {
    std::vector<Tensor> arguments;
    for (const Tensor& carry : carries) {
      carries_.push_back(around_.own("loop", carry.value()));
      arguments.push_back(argument(ir::ops::state, carry, "carry", carry.shape()));
    }
    states_ = arguments;
    return arguments;
  }

  std::vector<Tensor> add_sequences(std::span<const Tensor> sequences) {
    std::vector<Tensor> elements;
    for (const Tensor& sequence : sequences) {
      if (sequence.rank() == 0)
        fail(fmt::format("sequence {} is a scalar", sequences_.size()), "loop_sequence",
             "the first dim of a sequence is that of the iterations");
      sequences_.push_back(around_.own("loop", sequence.value()));
      Shape shape;
      for (int d = 1; d < sequence.rank(); ++d) shape.push_back(sequence.shape()[d]);
      elements.push_back(argument(ir::ops::input, sequence, "element", shape));
    }
    return elements;
  }

  LoopResults finish(const Dim& trips, const LoopStep& step) {
    set_next(step.carries);
    for (std::size_t i = 0; i < step.outputs.size(); ++i) {
      detail::check_operands("loop", at_, {&step.outputs[i]});
      body_->output(fmt::format("out{}", i), step.outputs[i].value());
    }
    const std::optional<ir::Value> rng = body_->iteration_rng;
    ir::Graph body = body_->close_body();
    if (rng) {
      sequences_.push_back(random_states(trips));
      body = with_arguments(body, arguments_with(rng->id(), body));
    }
    ir::LoopParts parts{.body = ir::Body(std::move(body)),
                        .trips = trips,
                        .carries = carries_,
                        .sequences = sequences_,
                        .reverse = reverse_};
    for (const ir::ValueId id : body_->captured()) parts.invariants.emplace_back(around_, id);
    LoopResults results;
    for (const ir::Value& result : ir::loop(around_, parts))
      (results.carries.size() < carries_.size() ? results.carries : results.outputs).emplace_back(result);
    return results;
  }

 private:
  /// Returns a random state for each iteration, [trips, 2]: the seed of the graph plus a multiple of an odd number,
  /// so that all seeds differ, and its step.
  ir::Value random_states(const Dim& trips) const {
    const Tensor state = Tensor(carries_.empty() ? sequences_[0] : carries_[0]).graph(at_).random_state(at_);
    const ir::Value index = ir::iota(around_, {trips.unnamed(), 1}, 0, i64);
    constexpr auto odd = static_cast<std::int64_t>(0x9e3779b97f4a7c15U);
    const ir::Value seeds = ir::add(ir::mul(ir::add(index, 1), odd), ir::slice(state.value(), 0, 0, 1));
    const ir::Value steps = ir::expand(ir::slice(state.value(), 0, 1, 2), {trips.unnamed(), 1});
    return ir::concat(std::vector<ir::Value>{seeds, steps}, 1);
  }

  /// Returns the arguments of the body with `rng` after the sequences.
  std::vector<ir::ValueId> arguments_with(ir::ValueId rng, const ir::Graph& body) const {
    std::vector<ir::ValueId> arguments = body.arguments();
    std::erase(arguments, rng);
    const std::size_t before = carries_.size() + sequences_.size() - 1;
    arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(before), rng);
    return arguments;
  }

  /// Returns the body with its arguments in this order.
  static ir::Graph with_arguments(const ir::Graph& body, std::span<const ir::ValueId> arguments) {
    ir::GraphBuilder builder(body.name);
    ir::Rebuilder to(builder, body);
    for (const ir::ValueId id : arguments) to.set(id, to.copy(body[id]));
    to.copy_rest();
    to.close();
    return builder.finish();
  }

  Tensor argument(const ir::Op& op, const Tensor& outside, std::string_view kind, const Shape& shape) {
    std::string name = outside.value().node().name;
    if (name.empty()) name = fmt::format("{}{}", kind, kind == "carry" ? carries_.size() - 1 : sequences_.size() - 1);
    name = body_->free_name(name);
    const ir::GraphBuilder::At at(*body_, outside.value().node().loc);
    return Tensor(body_->argument(op, name, outside.dtype(), shape));
  }

  void set_next(std::span<const Tensor> next) {
    if (next.size() != states_.size())
      fail(fmt::format("the body returns {} values for {} carries", next.size(), states_.size()), "loop_carry",
           "it returns the next value of each carry, in their order");
    for (std::size_t i = 0; i < next.size(); ++i) {
      detail::check_operands("loop", at_, {&next[i]});
      const ir::Node& carry = states_[i].value().node();
      if (next[i].dtype() != carry.type.dtype || next[i].shape() != carry.type.shape)
        fail(fmt::format("the carry {} is {}, its next value {}", carry.name, carry.type.to_string(),
                         next[i].value().type().to_string()),
             "loop_carry", "all iterations have the same dtypes and shapes; cast or expand the first value");
      body_->update(states_[i].value(), next[i].value());
    }
  }

  [[noreturn]] void fail(const std::string& message, std::string_view label, std::string_view hint) const {
    throw UserError(detail::line_of(around_, at_), "loop", message, label, hint);
  }

  ir::GraphBuilder& around_;
  OpenLoop open_;
  std::shared_ptr<detail::GraphState> body_;
  bool reverse_;
  Where at_;
  std::vector<ir::Value> carries_, sequences_;
  std::vector<Tensor> states_;  // the carries in the body
};

/// Returns the builder of a loop with these operands.
std::shared_ptr<ir::GraphBuilder> around(const std::vector<Tensor>& carries, const std::vector<Tensor>& sequences,
                                         const Where& at) {
  std::vector<Tensor> operands = carries;
  operands.insert(operands.end(), sequences.begin(), sequences.end());
  detail::check_operands("loop", at, operands);
  std::vector<ir::Value> values;
  for (const Tensor& operand : operands) values.push_back(operand.value());
  return values[0].builder().innermost(values).shared_from_this();
}

/// The iterations of a loop with checkpoints: whole segments, and the rest, which has fewer.
struct Segments {
  Dim count = 0;
  std::int64_t length = 0, rest = 0;
};

Segments segments_of(const Dim& trips, std::int64_t length, const Location& at) {
  const auto known = trips.value();
  const auto count = length > 0 ? trips.unnamed().divided_by(length) : std::nullopt;
  if (length < 0 || (!known && !count))
    throw UserError(at, "loop",
                    length < 0
                        ? fmt::format("checkpoint_every is {}", length)
                        : fmt::format("{} iterations do not divide into segments of {}", trips.to_string(), length),
                    "loop_checkpoint",
                    length < 0 ? "give a number of iterations, or 0 for no checkpoints"
                               : "write the size as a multiple, such as 8 * n, or give a known size");
  if (known) return {.count = Dim(*known / length), .length = length, .rest = *known % length};
  return {.count = *count, .length = length};
}

/// Runs some of the iterations.
LoopResults run_part(const std::vector<Tensor>& carries, const std::vector<Tensor>& sequences, const Dim& first,
                     const Dim& end, const ScanBody& body, const LoopOptions& options, const Where& at) {
  std::vector<Tensor> parts;
  for (const Tensor& sequence : sequences) parts.push_back(sequence.slice(0, first, end, 1, at));
  return scan(carries, parts, body, options, at);
}

/// A loop over segments, whose body is a loop: its gradient runs the inner loop again.
LoopResults run_segments(const std::vector<Tensor>& carries, const std::vector<Tensor>& sequences,
                         const Segments& segments, const ScanBody& body, const LoopOptions& options,
                         const Where& at) {
  std::vector<Tensor> parts;
  const Dim whole = segments.count * Dim(segments.length);
  for (const Tensor& sequence : sequences) {
    Shape shape{segments.count, Dim(segments.length)};
    for (int d = 1; d < sequence.rank(); ++d) shape.push_back(sequence.shape()[d]);
    parts.push_back(sequence.slice(0, 0, whole, 1, at).reshape(shape, at));
  }
  const ScanBody segment = [&](std::span<const Tensor> states, std::span<const Tensor> elements) {
    LoopResults inner = scan({states.begin(), states.end()}, {elements.begin(), elements.end()}, body, options, at);
    return LoopStep{std::move(inner.carries), std::move(inner.outputs)};
  };
  const std::string name = fmt::format("{}.segment", options.name);
  LoopResults results = scan(carries, parts, segment, {.name = name, .reverse = options.reverse}, at);
  for (Tensor& output : results.outputs) {
    Shape shape{whole};
    for (int d = 2; d < output.rank(); ++d) shape.push_back(output.shape()[d]);
    output = output.reshape(shape, at);
  }
  return results;
}

LoopResults scan_with_checkpoints(const std::vector<Tensor>& carries, const std::vector<Tensor>& sequences,
                                  const ScanBody& body, LoopOptions options, const Where& at) {
  const Dim trips = sequences[0].shape()[0];
  const Segments segments =
      segments_of(trips, std::exchange(options.checkpoint_every, 0),
                  detail::line_of(carries.empty() ? sequences[0].builder() : carries[0].builder(), at));
  if (segments.count.is(0)) return scan(carries, sequences, body, options, at);
  if (segments.rest == 0) return run_segments(carries, sequences, segments, body, options, at);
  const Dim whole = segments.count * Dim(segments.length);
  const auto rest = [&](const std::vector<Tensor>& first) {
    return run_part(first, sequences, whole, trips.unnamed(), body, options, at);
  };
  const auto main = [&](const std::vector<Tensor>& first) {
    return run_segments(first, sequences, segments, body, options, at);
  };
  LoopResults first = options.reverse ? rest(carries) : main(carries);
  LoopResults second = options.reverse ? main(first.carries) : rest(first.carries);
  if (options.reverse) std::swap(first.outputs, second.outputs);
  for (std::size_t i = 0; i < first.outputs.size(); ++i)
    second.outputs[i] = concat({first.outputs[i], second.outputs[i]}, 0, at);
  return second;
}

}  // namespace

LoopResults scan(std::vector<Tensor> carries, std::vector<Tensor> sequences, const ScanBody& body,
                 const LoopOptions& options, Where at) {
  if (sequences.empty())
    throw UserError(Location(at), "loop", "no sequence is given", "loop_sequence",
                    "repeat() runs a body a given number of times");
  const auto builder = around(carries, sequences, at);
  const detail::Line line(*builder, at);
  if (options.checkpoint_every != 0 && sequences[0].rank() > 0)
    return scan_with_checkpoints(carries, sequences, body, options, at);
  LoopBuilder loop(builder, options, at);
  const std::vector<Tensor> states = loop.add_carries(carries), elements = loop.add_sequences(sequences);
  const LoopStep step = body(states, elements);
  return loop.finish(sequences[0].shape()[0], step);
}

std::pair<Tensor, Tensor> scan(const Tensor& carry, const Tensor& sequence,
                               const std::function<std::pair<Tensor, Tensor>(const Tensor&, const Tensor&)>& body,
                               const LoopOptions& options, Where at) {
  const ScanBody general = [&](std::span<const Tensor> carries, std::span<const Tensor> elements) {
    auto [next, output] = body(carries[0], elements[0]);
    return LoopStep{{next}, {output}};
  };
  const LoopResults results = scan({carry}, {sequence}, general, options, at);
  return {results.carries[0], results.outputs[0]};
}

LoopResults repeat(const Dim& times, std::vector<Tensor> carries, const RepeatBody& body, const LoopOptions& options,
                   Where at) {
  if (carries.empty())
    throw UserError(Location(at), "loop", "no carry is given", "loop_carry",
                    "give the values that iterations change");
  if (const auto count = times.value(); count && *count < 0)
    throw UserError(Location(at), "repeat", fmt::format("the number of iterations is {}", *count), "dim_negative",
                    "give 0 or more");
  const auto builder = around(carries, {}, at);
  const detail::Line line(*builder, at);
  const Tensor indices(ir::iota(*builder, {times}, 0, i64));
  const ScanBody general = [&](std::span<const Tensor> states, std::span<const Tensor> elements) {
    return body(states, elements[0]);
  };
  return scan(std::move(carries), {indices}, general, options, at);
}

Tensor repeat(const Dim& times, const Tensor& carry,
              const std::function<Tensor(const Tensor& carry, const Tensor& index)>& body, const LoopOptions& options,
              Where at) {
  const RepeatBody general = [&](std::span<const Tensor> carries, const Tensor& index) {
    return LoopStep{{body(carries[0], index)}};
  };
  return repeat(times, std::vector<Tensor>{carry}, general, options, at).carries[0];
}

}  // namespace lathe
