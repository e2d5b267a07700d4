#include "frontend/train/gradient_hook.h"

#include <fmt/core.h>

#include "frontend/built.h"
#include "frontend/graph.h"
#include "frontend/train/named_gradient.h"
#include "frontend/train/own_lines.h"
#include "frontend/train/step_error.h"

namespace lathe::detail {

namespace {

void check(const NamedGradient& each, const Location& line) {
  std::string fault;
  if (each.gradient.is_empty())
    fault = "no gradient";
  else if (!is_float(each.gradient.dtype()) || each.gradient.shape() != each.parameter.shape())
    fault = "a gradient " + each.gradient.value().type().to_string();
  require_at(
      line, fault.empty(),
      fmt::format("the gradient hook gives {}: {} {}", each.name, each.parameter.value().type().to_string(), fault),
      "gradient_hook", "give each parameter a float gradient of its shape");
}

}  // namespace

void run_hook(const GradientHook& hook, ir::GraphBuilder& builder, std::span<NamedGradient> gradients) {
  const Location line = builder.location();
  {
    const OwnLines own(builder);
    hook(gradients);
  }
  for (const NamedGradient& each : gradients) {
    check(each, line);
    builder.require_own("training_step", each.gradient.value());
  }
}

ir::Graph finish_step(GraphState& step) {
  for (const Initializer& entry : step.initializers) {
    if (entry.init.kind == Init::Kind::constant && entry.init.a == 0) continue;
    throw UserError(fmt::format("training_step: the state {} of a gradient hook does not start at zero", entry.name),
                    "gradient_hook", "declare it in the model's graph, or start it at zero");
  }
  return step.finish();
}

}  // namespace lathe::detail
