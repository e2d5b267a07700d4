#include "frontend/ops/loops.h"

#include <fmt/core.h>

#include <memory>
#include <string>

#include "frontend/built.h"
#include "frontend/graph.h"
#include "ir/ops/functional/functional.h"
#include "ir/ops/loop.h"
#include "ir/ops/primitives/primitives.h"

namespace lathe {

namespace {

/// A loop whose body is being built.
class LoopBuilder {
 public:
  LoopBuilder(const std::shared_ptr<ir::GraphBuilder>& around, const LoopOptions& options, const Where& at)
      : around_(*around),
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
    ir::LoopParts parts{.body = ir::Body(body_->close_body()),
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

}  // namespace

LoopResults scan(std::vector<Tensor> carries, std::vector<Tensor> sequences, const ScanBody& body,
                 const LoopOptions& options, Where at) {
  if (sequences.empty())
    throw UserError(Location(at), "loop", "no sequence is given", "loop_sequence",
                    "repeat() runs a body a given number of times");
  const auto builder = around(carries, sequences, at);
  const detail::Line line(*builder, at);
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
