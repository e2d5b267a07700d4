#pragma once

#include <functional>
#include <span>

#include "ir/tensor/builder.h"

/// Hooks of a training step: DSL code between the backward pass and the update.
namespace lathe {

struct NamedGradient;  // frontend/train/named_gradient.h

/// Changes gradients before they are clipped and used. Called once, while the training step is built, with all
/// trained parameters in declaration order. The ops that it builds are part of the compiled step. A state that it
/// declares (with g.state() of the graph of any of the tensors) starts at zero and is updated in every run.
///
///   options.gradient_hook = [](std::span<NamedGradient> all) {
///     for (NamedGradient& each : all) each.gradient = maximum(minimum(each.gradient, 1), -1);  // clips each element
///   };
using GradientHook = std::function<void(std::span<NamedGradient> gradients)>;

namespace detail {

struct GraphState;

/// Calls the hook; its ops are built at its own lines, in the scope "optimizer". Throws UserError [gradient_hook] for
/// a gradient that is empty, not a float, or of a shape that differs from its parameter's; [op_other_graph].
void run_hook(const GradientHook& hook, ir::GraphBuilder& builder, std::span<NamedGradient> gradients);

/// Returns the finished training step. Throws UserError [gradient_hook] if a hook declared a state with an initial
/// value other than zero, which would be ignored.
ir::Graph finish_step(GraphState& step);

}  // namespace detail

}  // namespace lathe
