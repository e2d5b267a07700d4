#pragma once

#include <functional>
#include <span>

#include "ir/tensor/builder.h"

/// Hooks of a training step: DSL between the backward pass and the update.
namespace lathe {

struct NamedGradient;  // frontend/train/named_gradient.h

/// Changes gradients before they are clipped and used: called once, while the training step is built, with all
/// trained parameters in the order of their declaration. What it builds is part of the compiled step. A state that it
/// declares (g.state(), of the graph of any of these tensors) starts at zero and is updated in every run.
///
///   options.gradient_hook = [](std::span<NamedGradient> all) {
///     for (NamedGradient& each : all) each.gradient = maximum(minimum(each.gradient, 1), -1);  // clips each element
///   };
using GradientHook = std::function<void(std::span<NamedGradient> gradients)>;

namespace detail {

struct GraphState;

/// Calls the hook; the ops that it builds stand at its own lines, in the scope "optimizer". UserError [gradient_hook]
/// for a gradient that is empty, no float, or of another shape than its parameter; [op_other_graph].
void run_hook(const GradientHook& hook, ir::GraphBuilder& builder, std::span<NamedGradient> gradients);

/// The finished training step. UserError [gradient_hook] where a hook declared a state that starts otherwise than at
/// zero, which nobody would see.
ir::Graph finish_step(GraphState& step);

}  // namespace detail

}  // namespace lathe
