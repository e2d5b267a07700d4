#include "frontend/ops/custom_op.h"

#include <fmt/core.h>

#include <algorithm>

#include "frontend/built.h"
#include "ir/ops/document.h"
#include "ir/ops/functional/functional.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/op/owned_op.h"

namespace lathe {

namespace {

/// A record and the line that created it.
struct Definition {
  std::shared_ptr<const CustomOpRecord> record;
  Location loc;

  const std::string& name() const { return record->name; }
};

using Values = std::vector<ir::Value>;

std::vector<Tensor> tensors_of(std::span<const ir::Value> values) { return {values.begin(), values.end()}; }

/// Runs `f` and adds the op and the failing part of it to its errors.
template <class F>
auto within(const Definition& definition, std::string_view part, const F& f) {
  try {
    return f();
  } catch (const UserError& error) {
    throw error.with_note(
        fmt::format("in the {} of {}, made at {}", part, definition.name(), definition.loc.place()));
  }
}

/// Returns what `make` builds from the values. If it fails because of their strides, copies them to contiguous ones
/// first: passes may change the strides of operands.
template <class Make>
auto of_any_strides(Values values, const Make& make) {
  const auto strided = [](const ir::Value& value) { return !value.type().is_contiguous(); };
  try {
    return make(values);
  } catch (const UserError& error) {
    if (error.label() != "view_stride" || std::none_of(values.begin(), values.end(), strided)) throw;
  }
  for (ir::Value& value : values) value = ir::contiguous(value);
  return make(values);
}

ir::Value forward(const Definition& definition, ir::GraphBuilder& builder, std::span<const ir::Value> operands,
                  const ir::Attributes& attrs) {
  return within(definition, "forward", [&] {
    return of_any_strides({operands.begin(), operands.end()}, [&](const Values& values) {
      const Tensor result = definition.record->forward(tensors_of(values), attrs);
      if (result.is_empty())
        throw UserError(builder.location(), definition.name(), "the forward gives an empty tensor", "tensor_empty",
                        "return what the op computes");
      builder.require_own(definition.name(), result.value());
      return ir::contiguous(result.value());
    });
  });
}

/// Declares operand `i` of a rule as an input of the separate graph `alone`, under its own name if that is free.
ir::Value stand_in(ir::GraphBuilder& alone, const ir::InferContext& ctx, int i) {
  const ir::TensorType& type = ctx.operand(i);
  const std::string& name = ctx.operand_node(i).name;
  const bool free = !name.empty() && !alone.find_argument(name);
  return alone.argument(ir::ops::input, free ? name : fmt::format("operand {}", i + 1), type.dtype, type.shape);
}

/// Returns the type of the forward; its run-time checks become those of the op.
ir::TensorType infer_from_forward(const Definition& definition, const ir::InferContext& ctx) {
  ir::GraphBuilder alone(definition.name());
  const ir::GraphBuilder::At at(alone, ctx.location());
  Values operands;
  for (int i = 0; i < ctx.arity(); ++i) operands.push_back(stand_in(alone, ctx, i));
  const ir::Value result = forward(definition, alone, operands, ctx.attrs());
  for (const ir::ValueId id : all_values(alone.graph()))
    if (alone.graph()[id].attrs.find("stream"))
      ctx.fail("custom_random", "the forward draws random numbers, others each time that it is expanded",
               "draw them outside of the op, and give them as an operand");
  for (const ir::DimCheck& check : alone.graph().checks) ctx.add_check(check);
  return ir::TensorType::contiguous(result.dtype(), result.shape());
}

ir::TensorType infer(const Definition& definition, const ir::InferContext& ctx) {
  if (!definition.record->infer) return infer_from_forward(definition, ctx);
  const ir::TensorType rule = definition.record->infer(ctx);
  const ir::TensorType type = infer_from_forward(definition, ctx);
  ctx.require(rule.dtype == type.dtype && rule.shape == type.shape, "custom_type",
              fmt::format("the rule gives {}, the forward {}", rule.to_string(), type.to_string()),
              fmt::format("the two must agree; the op is made at {}", definition.loc.place()));
  return ir::TensorType::contiguous(rule.dtype, rule.shape);
}

[[noreturn]] void fail_gradient(const Definition& definition, const ir::GradientContext& g,
                                std::string_view message) {
  throw UserError(g.builder.location(), definition.name(), message, "custom_gradient",
                  "a backward gives a tensor for each operand, of its dtype and shape; an empty one for no gradient");
}

void set_gradient(const Definition& definition, const ir::GradientContext& g, int i, const ir::Value& gradient) {
  g.builder.require_own(definition.name(), gradient);
  const ir::TensorType &operand = g.operand(i).type(), &found = gradient.type();
  if (found.dtype != operand.dtype || (found.shape != operand.shape && found.shape != g.node.type.shape))
    fail_gradient(definition, g,
                  fmt::format("the gradient of operand {} is {}, the operand {}", i + 1, found.to_string(),
                              operand.to_string()));
  g.set(i, gradient);
}

void backward(const Definition& definition, const ir::GradientContext& g) {
  within(definition, "backward", [&] {
    Values given(g.operands.begin(), g.operands.end());
    given.insert(given.end(), {g.result, g.grad});
    const std::vector<Tensor> found = of_any_strides(std::move(given), [&](const Values& values) {
      const std::vector<Tensor> tensors = tensors_of(values);
      const std::size_t n = tensors.size() - 2;
      return definition.record->backward({.operands = std::span(tensors).first(n),
                                          .result = tensors[n],
                                          .grad = tensors[n + 1],
                                          .attrs = g.node.attrs});
    });
    if (found.size() != g.operands.size())
      fail_gradient(definition, g,
                    fmt::format("the backward gives {} gradients for {} operands", found.size(), g.operands.size()));
    for (int i = 0; i < static_cast<int>(found.size()); ++i)
      if (const Tensor& gradient = found[i]; g.needs(i) && !gradient.is_empty())
        set_gradient(definition, g, i, gradient.value());
  });
}

/// Converts the record to the IR's form.
ir::OpDefinition in_values(const Definition& definition) {
  const CustomOpRecord& record = *definition.record;
  if (!record.forward)
    throw UserError(definition.loc, "custom_op", fmt::format("{} has no forward", record.name), "op_forward",
                    "say what the op means, in other ops");
  ir::OpDefinition made{
      .name = record.name,
      .doc = record.doc,
      .loc = definition.loc,
      .arity = record.arity,
      .attrs = record.attrs,
      .labels = record.labels,
      .infer = [definition](const ir::InferContext& ctx) { return infer(definition, ctx); },
      .expand =
          [definition](ir::GraphBuilder& builder, const ir::Node& node, std::span<const ir::Value> operands) {
            return forward(definition, builder, operands, node.attrs);
          },
      .precision = record.precision,
      .samples = record.samples,
  };
  if (!record.not_differentiable.empty())
    made.gradient = record.not_differentiable;
  else if (record.backward)
    made.gradient = [definition](const ir::GradientContext& g) { backward(definition, g); };
  return made;
}

}  // namespace

CustomOp::CustomOp(CustomOpRecord record, Where at)
    : definition_(std::make_shared<const CustomOpRecord>(std::move(record))),
      op_(ir::OwnedOp::make(in_values({definition_, Location(at)}))) {}

Tensor CustomOp::call(std::span<const Tensor> operands, const ir::Attributes& attrs, const Where& at) const {
  const std::string& name = definition_->name;
  if (operands.empty())
    throw UserError(Location(at), name, "no operands are given", "op_arity", "give at least one tensor");
  detail::check_operands(name, at, operands);
  const detail::Line line(operands[0], at);
  Values values;
  for (const Tensor& operand : operands) values.push_back(operand.value());
  return Tensor(operands[0].builder().add(*op_, values, attrs));
}

Tensor CustomOp::operator()(const Tensor& a, Where at) const { return call(std::span(&a, 1), {}, at); }
Tensor CustomOp::operator()(const Tensor& a, const Tensor& b, Where at) const { return (*this)({a, b}, {}, at); }
Tensor CustomOp::operator()(const Tensor& a, const Tensor& b, const Tensor& c, Where at) const {
  return (*this)({a, b, c}, {}, at);
}
Tensor CustomOp::operator()(std::initializer_list<Tensor> operands, const ir::Attributes& attrs, Where at) const {
  return call({operands.begin(), operands.size()}, attrs, at);
}
Tensor CustomOp::operator()(const std::vector<Tensor>& operands, const ir::Attributes& attrs, Where at) const {
  return call(operands, attrs, at);
}

std::string CustomOp::document() const { return ir::document_op(*op_); }

}  // namespace lathe
