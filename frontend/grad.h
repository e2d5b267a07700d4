#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/tensor.h"

namespace lathe {

/// Returns d(output)/d(wrt), one tensor per element of `wrt`, of the same shape. If `output` is not a scalar, returns
/// the product of `cotangent` (of the output's shape) with the Jacobian. Gradients are ordinary tensors: they can be
/// used, differentiated again and declared as outputs. Throws the UserErrors of passes/autodiff/autodiff.h
/// ([grad_scalar], ..).
///
///   Tensor hv = grad((grad(loss, {w})[0] * v).sum(), {w})[0];  // a Hessian-vector product
std::vector<Tensor> grad(const Tensor& output, std::initializer_list<Tensor> wrt,
                         const std::optional<Tensor>& cotangent = {}, Where at = Where::current());
std::vector<Tensor> grad(const Tensor& output, const std::vector<Tensor>& wrt,
                         const std::optional<Tensor>& cotangent = {}, Where at = Where::current());

/// Returns the gradients of a scalar loss by parameter name, for each float parameter of its graph that it depends
/// on.
///
///   for (const auto& [name, gradient] : parameter_gradients(loss)) g.output("grad." + name, gradient);
std::map<std::string, Tensor> parameter_gradients(const Tensor& loss, Where at = Where::current());

}  // namespace lathe
