#pragma once

#include <vector>

#include "models/import/ops/tensor_functions.h"

/// Images that are read at the positions of a grid.
namespace lathe::importing {

/// How positions outside of an image are changed.
enum class Outside : std::uint8_t { zeros, border, reflection };

/// round_first rounds a position to an element before it is moved inside of the image, as ONNX does; round_last does
/// so after it, as PyTorch does.
enum class GridMode : std::uint8_t { linear, cubic, round_first, round_last };

struct GridOptions {
  GridMode mode = GridMode::linear;
  Outside outside = Outside::zeros;
  bool aligns_corners = false;
};

/// Returns the elements of x [N, C, sizes..] at a grid [N, .., dims] of positions from -1 to 1, which name the last
/// spatial dim first. Throws [import_operand] for other shapes.
Tensor sampled(const OpCall& call, const Tensor& x, const Tensor& grid, const GridOptions& options);

/// Returns the grid [N, .., dims] that an affine map theta [N, dims, dims + 1] gives for an image of a size
/// [N, C, ..]. With aligned corners, the only position along a dim of one element is `single`.
Tensor affine_grid(const OpCall& call, const Tensor& theta, const std::vector<Dim>& size, bool aligns_corners,
                   double single);

}  // namespace lathe::importing
