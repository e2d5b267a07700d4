#include "ir/tensor/op/owned_op.h"

#include <fmt/core.h>

namespace lathe::ir {

namespace {

const OpDefinition& definition_of(const Op& op) {
  LATHE_ASSERT(op.owned);
  return op.owned->definition();
}

TensorType run_infer(const InferContext& ctx) { return definition_of(ctx.op()).infer(ctx); }

Value run_expand(GraphBuilder& builder, const Node& node, std::span<const Value> operands) {
  return definition_of(*node.op).expand(builder, node, operands);
}

using Rule = std::function<void(const GradientContext&)>;

void run_gradient(const GradientContext& g) { std::get<Rule>(definition_of(*g.node.op).gradient)(g); }

Gradient gradient_of(const OpDefinition& definition) {
  if (const auto* why = std::get_if<std::string>(&definition.gradient)) return NotDifferentiable{*why};
  if (std::holds_alternative<Rule>(definition.gradient)) return GradientRule(run_gradient);
  return FromExpansion{};
}

}  // namespace

OpRef::OpRef(const Op* op) : op_(op), counted_(op && op->owned) {
  if (counted_) hold();
}

void OpRef::hold() const { ++op_->owned->references_; }

void OpRef::release() const {
  if (--op_->owned->references_ == 0) delete op_->owned;
}

std::vector<Sample> samples_of(const Op& op) {
  return op.owned ? op.owned->definition().samples : op.samples.value();
}

bool is_own_op_name(std::string_view name) {
  return is_dim_name(name) && name.find('@') == std::string_view::npos && name.find('.') != std::string_view::npos &&
         !name.ends_with('.') && name.find("..") == std::string_view::npos;
}

std::unique_ptr<const OwnedOp::Views> OwnedOp::views_of(const OpDefinition& definition) {
  auto views = std::make_unique<Views>();
  const auto kept = [&](std::string_view text) { return std::string_view(views->texts.emplace_back(text)); };
  for (AttrSpec spec : definition.attrs) {
    spec.name = kept(spec.name);
    spec.doc = kept(spec.doc);
    if (auto* text = std::get_if<std::string_view>(&spec.fallback)) *text = kept(*text);
    views->attrs.push_back(spec);
  }
  views->labels.assign(definition.labels.begin(), definition.labels.end());
  return views;
}

OwnedOp::OwnedOp(std::unique_ptr<const OpDefinition> definition, std::unique_ptr<const Views> views)
    : Op{.name = std::string_view(definition->name),
         .doc = std::string_view(definition->doc),
         .arity = definition->arity,
         .attrs = std::span<const AttrSpec>(views->attrs),
         .labels = std::span<const std::string_view>(views->labels),
         .infer = run_infer,
         .meaning = Composite{run_expand},
         .precision = definition->precision,
         .gradient = gradient_of(*definition),
         .samples = [] { return std::vector<Sample>(); },
         .owned = this},
      definition_(std::move(definition)),
      views_(std::move(views)) {}

OpRef OwnedOp::make(OpDefinition definition) {
  if (!is_own_op_name(definition.name))
    throw UserError(definition.loc, "custom_op",
                    fmt::format("'{}' is no name for an op of a program", definition.name), "op_name",
                    "such a name has words with dots between them, as my.swish; those without a dot are Lathe's");
  LATHE_ASSERT(definition.infer && definition.expand);
  auto kept = std::make_unique<const OpDefinition>(std::move(definition));
  auto views = views_of(*kept);
  return OpRef(new OwnedOp(std::move(kept), std::move(views)));
}

}  // namespace lathe::ir
