#pragma once

#include <initializer_list>
#include <optional>
#include <vector>

#include "frontend/tensor.h"

namespace lathe {

/// d(output)/d(wrt), one tensor for each of `wrt` and of its shape; of an output that is no scalar, the product of
/// `cotangent` (of the output's shape) with the Jacobian. Gradients are ordinary tensors: they can be used,
/// differentiated again and declared as outputs. Throws UserError as passes/autodiff/autodiff.h says ([grad_scalar],
/// ..).
///
///   Tensor hv = grad((grad(loss, {w})[0] * v).sum(), {w})[0];  // a Hessian-vector product
std::vector<Tensor> grad(const Tensor& output, std::initializer_list<Tensor> wrt,
                         const std::optional<Tensor>& cotangent = {}, Where at = Where::current());
std::vector<Tensor> grad(const Tensor& output, const std::vector<Tensor>& wrt,
                         const std::optional<Tensor>& cotangent = {}, Where at = Where::current());

}  // namespace lathe
