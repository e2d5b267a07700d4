#include "frontend/grad.h"

#include "frontend/built.h"
#include "passes/autodiff/autodiff.h"

namespace lathe {

std::vector<Tensor> grad(const Tensor& output, const std::vector<Tensor>& wrt, const std::optional<Tensor>& cotangent,
                         Where at) {
  for (const Tensor& t : wrt) detail::check_operands("grad", at, {&output, &t});
  if (cotangent) detail::check_operands("grad", at, {&output, &*cotangent});
  const CallSite line(output, at);
  std::vector<ir::Value> values;
  for (const Tensor& t : wrt) values.push_back(t.value());
  std::optional<ir::Value> seed;
  if (cotangent) seed = cotangent->value();
  const ir::Gradients found = ir::gradients(output.builder(), output.value(), seed, values);
  return {found.values.begin(), found.values.end()};
}

std::vector<Tensor> grad(const Tensor& output, std::initializer_list<Tensor> wrt,
                         const std::optional<Tensor>& cotangent, Where at) {
  return grad(output, std::vector<Tensor>(wrt), cotangent, at);
}

}  // namespace lathe
