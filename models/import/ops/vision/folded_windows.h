#pragma once

#include "models/import/ops/tensor_functions.h"

namespace lathe::importing {

/// The windows along one dim.
struct FoldedWindows {
  std::int64_t stride = 1, dilation = 1;
  Dim padding = 0;  ///< of the dim at its start, which the result leaves out
  Dim size = 0;     ///< of the result
};

/// Adds the elements of windows to their places: the transpose of reading windows. `elements` is the dim of the
/// elements of a window, of known size, and `windows` that of the windows, which the result has `size` elements of a
/// signal in place of. Windows may begin and end outside of the signal.
Tensor folded(const Tensor& x, int elements, int windows, const FoldedWindows& options);

/// The blocks of an image, with a number for each spatial dim.
struct ImageBlocks {
  std::vector<Dim> image;  ///< its sizes
  Ints size, stride, dilation;
  Ints low, high;  ///< padding before and after the image

  std::int64_t extent(std::size_t i) const { return dilation[i] * (size[i] - 1) + 1; }
};

/// Adds the elements of all blocks of an image to their places: [N, C * elements of a block, blocks] ->
/// [N, C, image..]. Throws [import_operand] for columns of other sizes, and SizeMultiple if a stride does not divide
/// an unknown size.
Tensor image_of_columns(const OpCall& call, const Tensor& columns, const ImageBlocks& blocks);

}  // namespace lathe::importing
