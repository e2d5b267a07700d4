#include "models/import/ops/vision/folded_windows.h"

#include <fmt/core.h>

#include "models/import/ops/sizes/dim_functions.h"
#include "models/import/ops/sizes/window_counts.h"

namespace lathe::importing {

namespace {

/// Puts stride - 1 zeros between the elements of a dim.
Tensor spread(const Tensor& x, int dim, std::int64_t stride) {
  if (stride == 1) return x;
  const Dim size = x.size(dim).unnamed();
  Shape shape = x.shape();
  shape.set(dim, size * Dim(stride));
  const Tensor all = pad(x.unsqueeze(dim + 1), dim + 1, 0, stride - 1).reshape(shape);
  return all.slice(dim, 0, (size - Dim(1)) * Dim(stride) + Dim(1));
}

/// The number of blocks along spatial dim `i`.
Dim count_of(const OpCall& call, const ImageBlocks& blocks, std::size_t i) {
  require_multiple(call, static_cast<int>(i) + 2, blocks.image[i], blocks.stride[i]);
  const Dim rest = blocks.image[i] + Dim(blocks.low[i] + blocks.high[i] - blocks.extent(i));
  const std::optional<Dim> after_first = quotient(rest, blocks.stride[i], true);
  if (!after_first) call.fail(fmt::format("windows at a stride of {}", blocks.stride[i]), "import_size");
  return *after_first + Dim(1);
}

}  // namespace

Tensor folded(const Tensor& x, int elements, int windows, const FoldedWindows& options) {
  const std::int64_t count = *x.size(elements).value();
  const int dim = windows > elements ? windows - 1 : windows;  // without the dim of the elements
  const Dim whole = options.size + options.padding;            // and less or more padding at the end
  Tensor sum;
  for (std::int64_t k = 0; k < count; ++k) {
    if ((whole - Dim(k * options.dilation)).value().value_or(0) < 0) break;  // all of it is padding
    Tensor part = spread(x.select(elements, k), dim, options.stride);
    const Dim start(k * options.dilation), rest = whole - start - part.size(dim).unnamed();
    const bool is_cut = rest.value() ? *rest.value() < 0 : false;
    part = is_cut ? pad(part.slice(dim, 0, whole - start), dim, start, 0) : pad(part, dim, start, rest);
    sum = sum.is_empty() ? part : sum + part;
  }
  return options.padding.is(0) ? sum : sum.slice(dim, options.padding, whole);
}

Tensor image_of_columns(const OpCall& call, const Tensor& columns, const ImageBlocks& blocks) {
  const std::size_t dims = blocks.image.size();
  if (columns.rank() != 3) call.fail(fmt::format("the columns have {} dims", columns.rank()), "import_operand");
  Dim elements = 1, count = 1;
  std::vector<Dim> counts;
  for (std::size_t i = 0; i < dims; ++i) {
    elements = elements * Dim(blocks.size[i]);
    counts.push_back(count_of(call, blocks, i));
    count = count * counts[i];
  }
  const std::optional<Dim> channels = columns.size(1).divided_by(elements);
  if (!channels || columns.size(2).equals(count) == Dim::Answer::no)
    call.fail(fmt::format("columns {} for blocks of {} elements and {} windows", columns.shape().to_string(),
                          elements.to_string(), count.to_string()),
              "import_operand");
  Shape split{columns.size(0), *channels};
  for (const std::int64_t size : blocks.size) split.push_back(size);
  for (const Dim& each : counts) split.push_back(each);
  Tensor x = columns.reshape(split);
  // The first dim of elements is at 2, and that of its windows is as many dims behind it as the image has.
  for (std::size_t i = 0; i < dims; ++i)
    x = folded(x, 2, 2 + static_cast<int>(dims),
               {.stride = blocks.stride[i],
                .dilation = blocks.dilation[i],
                .padding = blocks.low[i],
                .size = blocks.image[i]});
  return x;
}

}  // namespace lathe::importing
