#include "ir/ops/document.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "ir/ops/primitives/primitives.h"
#include "ir/tensor/builder.h"
#include "ir/tensor/text/printer.h"

namespace lathe::ir {

namespace {

std::string_view kind_word(AttrKind kind) {
  switch (kind) {
    case AttrKind::boolean: return "bool";
    case AttrKind::integer: return "integer";
    case AttrKind::real:
    case AttrKind::number: return "number";
    case AttrKind::text: return "text";
    case AttrKind::dtype: return "dtype";
    case AttrKind::dim: return "dim";
    case AttrKind::integers: return "list of integers";
    case AttrKind::reals:
    case AttrKind::numbers: return "list of numbers";
    case AttrKind::shape: return "shape";
    case AttrKind::body: return "body";
  }
  throw InternalError("an attribute kind out of range");
}

std::string default_text(const AttrSpec& spec) {
  if (spec.required) return "required";
  if (const auto* v = std::get_if<bool>(&spec.fallback)) return print_attribute(*v);
  if (const auto* v = std::get_if<std::int64_t>(&spec.fallback)) return print_attribute(*v);
  if (const auto* v = std::get_if<double>(&spec.fallback)) return print_attribute(*v);
  if (const auto* v = std::get_if<std::string_view>(&spec.fallback)) return print_attribute(std::string(*v));
  return "none";
}

std::string attribute_table(const Op& op) {
  if (op.attrs.value.empty()) return {};
  std::string text = "\n| attribute | kind | default | |\n|---|---|---|---|\n";
  for (const AttrSpec& spec : op.attrs.value)
    text += fmt::format("| `{}` | {} | {} | {} |\n", spec.name, kind_word(spec.kind), default_text(spec), spec.doc);
  return text;
}

std::string arity_text(const Arity& arity) {
  if (arity.max == arity.min) return arity.min == 0 ? "none" : fmt::format("{}", arity.min);
  return arity.max < 0 ? fmt::format("{} or more", arity.min) : fmt::format("{} to {}", arity.min, arity.max);
}

/// A sample built in its own graph; the op is the last node.
struct Example {
  GraphBuilder builder{"example"};
  std::vector<Value> operands;
  std::vector<Value> result;
};
void build_example(Example& example, const Op& op, const Sample& sample) {
  for (const SampleOperand& operand : sample.operands) {
    Shape shape;
    for (const std::int64_t size : operand.sizes) shape.push_back(Dim(size));
    const std::string name(1, static_cast<char>('a' + example.operands.size()));
    example.operands.push_back(example.builder.argument(ops::input, name, operand.dtype, shape));
  }
  example.result.push_back(example.builder.add(op, example.operands, sample.attrs));
}

/// Returns the ops of a composite's expansion, without duplicates: "sub, exp, sum".
std::string expansion_ops(const Op& op, const Composite& composite) {
  std::vector<std::string_view> names;
  for (const Sample& sample : samples_of(op)) {
    Example example;
    build_example(example, op, sample);
    const int before = example.builder.graph().size();
    (void)composite.expand(example.builder, example.result[0].node(), example.operands);
    for (int i = before; i < example.builder.graph().size(); ++i) {
      const std::string_view name = example.builder.graph()[ValueId{i}].op->name.value;
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names.empty() ? "its operand" : fmt::format("{}", fmt::join(names, ", "));
}

struct MeaningText {
  const Op& op;
  std::string operator()(const Elementwise& m) const {
    return fmt::format("the element-wise scalar operation `{}`", name(m.op));
  }
  std::string operator()(const View&) const { return "a view: changes strides, no copy"; }
  std::string operator()(const Reduce& m) const {
    return fmt::format("reduces dims by `{}`, from {}", name(m.combine), print_real(m.identity));
  }
  std::string operator()(const Contraction&) const { return "a contraction of two tensors over labelled dims"; }
  std::string operator()(const Composite& m) const { return "expands into " + expansion_ops(op, m); }
  std::string operator()(const Argument&) const { return "bound by the caller"; }
  std::string operator()(const Custom& m) const {
    return m.kind == CustomKind::collective ? "a collective" : "its own kernel";
  }
  std::string operator()(const Loop&) const { return "runs its body once per iteration"; }
};

const MeaningForm& meaning_of(const Op& op) { return op.meaning; }

struct GradientText {
  std::string operator()(GradientRule) const { return "by a gradient rule"; }
  std::string operator()(FromExpansion) const { return "from its expansion"; }
  std::string operator()(const NotDifferentiable& none) const { return fmt::format("none: {}", none.why); }
  std::string operator()(ThroughBody) const { return "a loop in the other direction over the gradient of its body"; }
};

std::string_view precision_text(MixedPrecision precision) {
  switch (precision) {
    case MixedPrecision::low_precision: return "low precision (bf16 or f16)";
    case MixedPrecision::f32: return "f32";
    case MixedPrecision::follow: return "the dtype of its operands";
    case MixedPrecision::expansion: return "per op of its expansion";
  }
  throw InternalError("a precision out of range");
}

std::string example_text(const Op& op) {
  const std::vector<Sample> samples = samples_of(op);
  if (samples.empty()) return {};
  Example example;
  build_example(example, op, samples.front());
  std::string text = "\n```\n";
  for (const Value& operand : example.operands)
    text += fmt::format("input %{}: {}\n", operand.node().name, print_type(operand.type()));
  PrintOptions options;
  options.locations = false;
  return text + print_node(example.builder.graph(), example.result[0].id(), options) + "\n```\n";
}

std::string code_list(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) text += fmt::format("{}`{}`", text.empty() ? "" : ", ", name);
  return text;
}

constexpr std::string_view family_titles[] = {"Element-wise", "Views",     "Reductions",      "Contraction",
                                              "Composites",   "Arguments", "Special kernels", "Loops"};

}  // namespace

std::string document_op(const Op& op) {
  std::string text = fmt::format("### `{}`\n\n{}.\n", op.name.value, op.doc.value);
  text += fmt::format("\n- operands: {}\n- meaning: {}\n", arity_text(op.arity.value),
                      std::visit(MeaningText{op}, meaning_of(op)));
  const GradientForm& gradient = op.gradient;
  text += fmt::format("- gradient: {}\n", std::visit(GradientText{}, gradient));
  text += fmt::format("- in mixed precision: {}\n", precision_text(op.precision));
  if (!op.labels.value.empty())
    text += fmt::format("- constraints: {}\n", code_list({op.labels.value.begin(), op.labels.value.end()}));
  return text + attribute_table(op) + example_text(op);
}

std::string document_ops() {
  std::string text =
      "# Ops\n\n"
      "The ops of the tensor IR. This page is generated from the op records (`ir/ops/document.h`); a test keeps it\n"
      "current. Element-wise ops broadcast by NumPy's rules. Negative dims count from the end. Views change only\n"
      "strides; every other op returns a contiguous result.\n";
  std::map<std::string_view, std::vector<std::string_view>> raised;
  for (std::size_t family = 0; family < std::variant_size_v<MeaningForm>; ++family) {
    text += fmt::format("\n## {}\n", family_titles[family]);
    for (const Op* op : all_ops()) {
      if (meaning_of(*op).index() != family) continue;
      text += "\n" + document_op(*op);
      for (const std::string_view label : op->labels.value) raised[label].push_back(op->name.value);
    }
  }
  text +=
      "\n## Constraints\n\n"
      "The constraints that ops check, by the label in their error messages. `tests/ops/errors/LABEL.lathe` has\n"
      "programs that violate them, with the text of each error.\n\n| label | ops |\n|---|---|\n";
  for (auto& [label, names] : raised) {
    std::sort(names.begin(), names.end());
    text += fmt::format("| `{}` | {} |\n", label, code_list(names));
  }
  return text;
}

}  // namespace lathe::ir
