#include "frontend/train/step.h"

#include "frontend/built.h"

namespace lathe {

ir::Graph training_step(const Graph& g, const Tensor& loss, const Optimizer& optimizer, const TrainingOptions& given,
                        Where at) {
  detail::check_operands("training_step", at, {&loss});
  {
    const CallSite line(g.builder(at), at);
    g.builder().require_own("training_step", loss.value());
  }
  const auto shared = std::make_shared<detail::GraphState>(g.finish());
  ir::GraphBuilder& builder = *shared;
  const ir::GraphBuilder::At scope(builder, g.builder().location());
  const CallSite site(builder, at);
  g.builder().require_own("training_step", loss.value());
  const ir::Value own(builder, loss.value().id());
  TrainingOptions options = given;
  options.frozen = [g, more = given.frozen](const ir::Node& parameter) {
    return g.is_frozen(parameter.name) || (more && more(parameter));
  };
  if (options.precision == f32) {
    add_training_step(own, optimizer, options);
    return detail::finish_step(*shared);
  }
  add_loss_output(own);
  const Location line = builder.location();
  return training_step(builder.finish(), "loss", optimizer, options, line);
}

}  // namespace lathe
