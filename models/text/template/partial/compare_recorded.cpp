#include "models/text/template/interpreter.h"
#include "models/text/template/library/namespace.h"
#include "models/text/template/partial/loop_recorder.h"

namespace lathe::jinja {

bool Interpreter::is_namespace_attribute(const Expr& expr) {
  const auto* attribute = std::get_if<Attribute>(&expr.node);
  const auto* name = attribute ? std::get_if<Name>(&attribute->object->node) : nullptr;
  if (!name || !variable(name->slot).is(Kind::object)) return false;
  return dynamic_cast<const Namespace*>(variable(name->slot).object()) != nullptr;
}

bool Interpreter::compare_recorded(const Comparison& comparison) {
  const auto& [comparator, second] = comparison.rest.front();
  LoopRecorder& recorder = *runtime_.recorder();
  const bool on_left = is_namespace_attribute(*comparison.first),
             on_right = !on_left && is_namespace_attribute(*second);
  AttributeRecord* attribute = nullptr;
  if (on_left) recorder.expect_attribute();
  const Value left = eval(comparison.first);
  if (on_left) attribute = recorder.expected_attribute();
  if (on_right) recorder.expect_attribute();
  const Value right = eval(second);
  if (on_right) attribute = recorder.expected_attribute();
  const bool holds = compare(comparator, left, right);
  if (on_right)
    recorder.compare_attribute(attribute, right, {mirrored(comparator), left, holds});
  else
    recorder.compare_attribute(attribute, left, {comparator, right, holds});
  return holds;
}

}  // namespace lathe::jinja
