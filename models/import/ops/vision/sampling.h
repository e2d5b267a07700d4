#pragma once

#include <vector>

#include "models/import/ops/tensor_functions.h"

/// Elements of images at positions that are computed at run time.
namespace lathe::importing {

/// Returns the elements of x [N, C, sizes..] at whole positions: one tensor of floats [N, P] for each spatial dim.
/// The result is [N, C, P]. Elements outside of x are 0.
Tensor elements_at(const Tensor& x, const std::vector<Tensor>& positions);

/// A position along one dim and the whole positions around it, with their weights: all float [N, P].
struct Neighbours {
  std::vector<Tensor> positions, weights;
};

/// Two neighbours, weighted by their distances.
Neighbours linear_neighbours(const Tensor& position);

/// Four neighbours, weighted by a cubic convolution with the factor -0.75.
Neighbours cubic_neighbours(const Tensor& position);

/// Returns the sum over all combinations of neighbours, one Neighbours for each spatial dim: x [N, C, sizes..] ->
/// [N, C, P].
Tensor interpolated(const Tensor& x, const std::vector<Neighbours>& neighbours);

}  // namespace lathe::importing
