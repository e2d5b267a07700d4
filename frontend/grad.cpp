#include "frontend/grad.h"

#include "frontend/built.h"
#include "ir/ops/primitives/primitives.h"
#include "passes/autodiff/autodiff.h"

namespace lathe {

std::vector<Tensor> grad(const Tensor& output, const std::vector<Tensor>& wrt, const std::optional<Tensor>& cotangent,
                         Where at) {
  for (const Tensor& t : wrt) detail::check_operands("grad", at, {&output, &t});
  if (cotangent) detail::check_operands("grad", at, {&output, &*cotangent});
  const CallSite line(output, at);
  std::vector<ir::Value> values;
  for (const Tensor& t : wrt) values.push_back(output.builder().own("grad", t.value()));
  std::optional<ir::Value> seed;
  if (cotangent) seed = output.builder().own("grad", cotangent->value());
  const ir::Gradients found = ir::gradients(output.builder(), output.value(), seed, values);
  return {found.values.begin(), found.values.end()};
}

std::vector<Tensor> grad(const Tensor& output, std::initializer_list<Tensor> wrt,
                         const std::optional<Tensor>& cotangent, Where at) {
  return grad(output, std::vector<Tensor>(wrt), cotangent, at);
}

std::map<std::string, Tensor> parameter_gradients(const Tensor& loss, Where at) {
  detail::check_operands("parameter_gradients", at, {&loss});
  const CallSite line(loss, at);
  ir::GraphBuilder& builder = loss.builder();
  std::vector<ir::Value> parameters;
  for (const ir::ValueId id : builder.graph().arguments())
    if (const ir::Node& node = builder.graph()[id]; node.op == &ir::ops::parameter && is_float(node.type.dtype))
      parameters.emplace_back(builder, id);
  const ir::Gradients found = ir::gradients(builder, loss.value(), {}, parameters, ir::Unused::zeros);
  std::map<std::string, Tensor> gradients;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (found.reached[i]) gradients.emplace(parameters[i].node().name, Tensor(found[i]));
  return gradients;
}

}  // namespace lathe
