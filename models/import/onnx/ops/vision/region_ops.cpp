#include <fmt/core.h>

#include "models/import/onnx/ops/networks/op_windows.h"
#include "models/import/onnx/ops/standard_ops.h"
#include "models/import/ops/indexing_functions.h"
#include "models/import/ops/vision/folded_windows.h"

/// Ops on regions of images, and images from their windows.
namespace lathe::onnx {

namespace {

/// The samples of regions along one dim: `count` bins with `each` samples in a row.
struct Samples {
  Tensor low, high;                ///< i64 [R, count * each]: the elements around each sample
  Tensor low_weight, high_weight;  ///< [R, count * each]: their weights, 0 for a sample outside of the image
};

/// Places samples in the bins from `start` on, of `length` / count each: both [R].
Samples samples_of(const Tensor& start, const Tensor& length, std::int64_t count, std::int64_t each,
                   const Dim& size) {
  const Graph graph = start.graph();
  const Tensor number = graph.arange(count * each, i64).to(start.dtype()) + 0.5;
  const Tensor at = start.unsqueeze(1) + number * (length / static_cast<double>(count * each)).unsqueeze(1);
  const Tensor extent = graph.dim_value(size).to(start.dtype()), last = extent - 1.0;
  const Tensor is_inside = ((at >= -1.0) & (at <= extent)).to(start.dtype());
  const Tensor limited = minimum(maximum(at, 0.0), last), low = limited.floor(), rest = limited - low;
  return {low.to(i64), minimum(low + 1.0, last).to(i64), (1.0 - rest) * is_inside, rest * is_inside};
}

/// Pools samples of regions x1, y1, x2, y2 of images. max: the largest weighted element around any sample.
Results roi_align(const OpCall& call) {
  const Tensor x = call.tensor(0), regions = call.tensor(1);
  if (x.rank() != 4 || regions.rank() != 2)
    call.fail("the image has not 4 dims, or the regions have not 2", "import_operand");
  const std::int64_t height = call.integer("output_height", 1), width = call.integer("output_width", 1),
                     each = call.integer("sampling_ratio", 0);
  if (height < 1 || width < 1) call.fail("output_height or output_width is not positive", "import_attribute");
  if (each < 1)
    call.fail(fmt::format("the attribute sampling_ratio is {}", each), "import_unsupported",
              "the number of samples must not depend on the regions: give 1 or more");
  const std::string mode = call.text("mode", "avg");
  if (mode != "avg" && mode != "max") call.fail(fmt::format("the attribute mode is '{}'", mode), "import_attribute");
  const std::string transform =
      call.text("coordinate_transformation_mode", call.version() < 16 ? "output_half_pixel" : "half_pixel");
  if (transform != "half_pixel" && transform != "output_half_pixel")
    call.fail(fmt::format("the attribute coordinate_transformation_mode is '{}'", transform), "import_attribute");
  const bool is_shifted = transform == "half_pixel";
  const Tensor scaled = regions * call.real("spatial_scale", 1) - (is_shifted ? 0.5 : 0.0);
  const auto along = [&](int first, std::int64_t count, const Dim& size) {
    const Tensor start = scaled.select(1, first), length = scaled.select(1, first + 2) - start;
    return samples_of(start, is_shifted ? length : maximum(length, 1.0), count, each, size);
  };
  const Samples rows = along(1, height, x.size(2)), columns = along(0, width, x.size(3));
  const Dim batch = regions.size(0), stride = x.size(3).unnamed(), image = x.size(2).unnamed() * stride;
  const Tensor flat = x.transpose(0, 1).reshape({x.size(1), x.size(0).unnamed() * image});
  const Tensor first =
      importing::checked(call.tensor(2).to(i64), x.size(0).unnamed()) * call.graph().dim_value(image);
  const auto term = [&](const Tensor& row, const Tensor& column, const Tensor& a, const Tensor& b) {
    const Tensor numbers =
        first.reshape({batch, 1, 1}) + (row * call.graph().dim_value(stride)).unsqueeze(2) + column.unsqueeze(1);
    const Tensor weights = a.unsqueeze(2) * b.unsqueeze(1);   // [R, rows, columns]
    return gather(flat, numbers, 1) * weights.to(x.dtype());  // [C, R, rows, columns]
  };
  const Tensor corners[] = {term(rows.low, columns.low, rows.low_weight, columns.low_weight),
                            term(rows.low, columns.high, rows.low_weight, columns.high_weight),
                            term(rows.high, columns.low, rows.high_weight, columns.low_weight),
                            term(rows.high, columns.high, rows.high_weight, columns.high_weight)};
  const auto pooled = [&](const Tensor& samples) {
    const Tensor bins = samples.reshape({x.size(1), batch, height, each, width, each});
    return (mode == "max" ? bins.max({3, 5}) : bins.mean({3, 5})).transpose(0, 1);
  };
  if (mode == "max") return {pooled(maximum(maximum(corners[0], corners[1]), maximum(corners[2], corners[3])))};
  return {pooled(corners[0] + corners[1] + corners[2] + corners[3])};
}

/// Adds the columns [N, C * elements, windows] of an image up, each at its place.
Results col2im(const OpCall& call) {
  const Tensor columns = call.tensor(0);
  const std::vector<Dim> image = call.dims(1, "the image shape");
  const Ints block = call.integers(2, "the block shape");
  if (image.size() != block.size()) call.fail("the shapes differ in rank", "import_operand");
  Shape sizes{1, 1};
  for (const Dim& size : image) sizes.push_back(size);
  const Windows windows = windows_of(call, call.graph().zeros(sizes, columns.dtype()), block);
  return {importing::image_of_columns(call, columns,
                                      {.image = image,
                                       .size = block,
                                       .stride = windows.stride,
                                       .dilation = windows.dilation,
                                       .low = windows.low,
                                       .high = windows.high})};
}

}  // namespace

std::span<const OpRecord> region_ops() {
  static constexpr OpRecord records[] = {
      {"RoiAlign", 10, 15, "mode output_height output_width sampling_ratio spatial_scale", roi_align},
      {"RoiAlign", 16, latest,
       "coordinate_transformation_mode mode output_height output_width sampling_ratio spatial_scale", roi_align},
      {"Col2Im", 18, latest, "dilations pads strides", col2im},
  };
  return records;
}

}  // namespace lathe::onnx
