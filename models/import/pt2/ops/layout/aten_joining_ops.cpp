#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "frontend/ops/spatial/pooling.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

/// Ops that join, split, repeat and surround tensors.
namespace lathe::pt2 {

namespace {

/// Returns the operands in their common dtype. PyTorch leaves out parts of shape [0].
std::vector<Tensor> parts_of(const OpCall& call) {
  if (call.count() == 0) call.fail("there are no tensors", "import_operand");
  const std::vector<Tensor> all = in_common_dtype(call);
  std::vector<Tensor> parts;
  for (const Tensor& part : all)
    if (part.rank() != 1 || !part.size(0).is(0)) parts.push_back(part);
  return parts.empty() ? std::vector<Tensor>{all[0]} : parts;
}

Results concat_op(const OpCall& call) {
  const std::vector<Tensor> parts = parts_of(call);
  const int axis = axis_argument(call, parts[0].rank(), std::int64_t{0});
  return {parts.size() == 1 ? parts[0] : concat(parts, axis)};
}

Results stack_op(const OpCall& call) {
  if (call.count() == 0) call.fail("there are no tensors", "import_operand");
  const std::vector<Tensor> parts = in_common_dtype(call);
  return {stack(parts, call.axis(call.integer("dim", 0), parts[0].rank() + 1))};
}

/// Expands all tensors to their common shape.
Results broadcast_tensors(const OpCall& call) {
  if (call.count() == 0) return {};
  const std::vector<Tensor> parts = call.tensors();
  // The sum of zeros in all shapes has the broadcast shape.
  Tensor common = call.graph().zeros(parts[0].shape(), i64);
  for (const Tensor& part : parts) common = common + call.graph().zeros(part.shape(), i64);
  Results results;
  for (const Tensor& part : parts) results.emplace_back(part.expand(common.shape()));
  return results;
}

/// Returns slices of the given sizes along a dim.
Results slices(const OpCall& call, const Tensor& x, int axis, const std::vector<Dim>& sizes) {
  Dim start = 0;
  Results parts;
  for (const Dim& size : sizes) {
    parts.emplace_back(x.slice(axis, start, start + size));
    start = start + size;
  }
  if (start.equals(x.size(axis)) == Dim::Answer::no)
    call.fail(
        fmt::format("the parts have {} elements, and the dim has {}", start.to_string(), x.size(axis).to_string()),
        "import_operand");
  return parts;
}

/// Parts of one size; the last one may be smaller. The node has one result per part.
Results equal_parts(const OpCall& call, const Dim& size) {
  const Tensor x = call.tensor(0);
  const int axis = axis_argument(call, x.rank(), std::int64_t{0});
  const std::size_t count = call.node().results.size();
  std::vector<Dim> sizes(count, size);
  if (count > 0) sizes.back() = x.size(axis).unnamed() - size * Dim(static_cast<std::int64_t>(count) - 1);
  return slices(call, x, axis, sizes);
}

Results split_op(const OpCall& call) {
  const std::vector<Dim> size = call.dims(1, "the size of a part");
  if (size.size() != 1) call.fail("the size of a part has more than one element", "import_operand");
  return equal_parts(call, size[0]);
}

Results split_with_sizes(const OpCall& call) {
  const Tensor x = call.tensor(0);
  return slices(call, x, axis_argument(call, x.rank(), std::int64_t{0}), call.dims(1, "the sizes of the parts"));
}

/// The size of a chunk is rounded up.
Results chunk_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const int axis = axis_argument(call, x.rank(), std::int64_t{0});
  const std::int64_t chunks = call.integer("chunks");
  if (chunks < 1) call.fail(fmt::format("{} chunks", chunks), "import_attribute");
  const Dim whole = x.size(axis).unnamed();
  if (const std::optional<Dim> equal = whole.divided_by(chunks)) return equal_parts(call, *equal);
  if (!whole.value())
    call.fail_size(fmt::format("the size {} is not known to be a multiple of {} chunks", whole.to_string(), chunks),
                   importing::needed_multiple(whole, chunks));
  return equal_parts(call, (*whole.value() + chunks - 1) / chunks);
}

Results unbind(const OpCall& call) {
  const Tensor x = call.tensor(0);
  const int axis = axis_argument(call, x.rank(), std::int64_t{0});
  Results parts;
  for (std::size_t i = 0; i < call.node().results.size(); ++i)
    parts.emplace_back(x.select(axis, static_cast<std::int64_t>(i)));
  return parts;
}

/// Repeats may have more elements than the operand has dims, which are added in front.
Results repeat_op(const OpCall& call) {
  Tensor x = call.tensor(0);
  std::vector<Dim> repeats = call.dims(1, "repeats");
  while (static_cast<std::size_t>(x.rank()) < repeats.size()) x = x.unsqueeze(0);
  repeats.insert(repeats.begin(), static_cast<std::size_t>(x.rank()) - repeats.size(), Dim(1));
  return {repeats.empty() ? x : tiled(x, repeats)};
}

Results repeat_interleave_op(const OpCall& call) {
  const Tensor x = call.tensor(0);
  call.ignore({"output_size"});
  const std::int64_t times = call.integer("repeats");
  if (!call.has("dim")) return {as_vector(x).repeat_interleave(times, 0)};
  return {x.repeat_interleave(times, axis_argument(call, x.rank()))};
}

/// Repeats each element of a dim as often as its own number says. The size of the result must be given. Element i of
/// it comes from the first element whose repeats, with those before it, exceed i.
Results repeat_by_numbers(const OpCall& call) {
  const bool has_dim = call.has("dim");
  const Tensor x = has_dim ? call.tensor(0) : as_vector(call.tensor(0));
  const int axis = has_dim ? axis_argument(call, x.rank()) : 0;
  if (!call.has(2)) call.fail("the size of the result follows from values", "import_size", "give output_size");
  const std::vector<Dim> size = call.dims(2, "output_size");
  const Tensor ends = cumsum(as_vector(call.tensor(1)).to(i64), 0);
  const Tensor places = call.graph().arange(size.at(0), i64).unsqueeze(1);
  return {gather(x, (ends <= places).to(i64).sum(1), axis)};
}

/// Pads, from the last dim on: {low, high} of each. Negative ones remove elements.
Tensor surrounded(const OpCall& call, const auto& op) {
  Tensor x = call.tensor(0);
  const std::vector<Dim> pads = call.dims(1, "pad");
  if (pads.size() % 2 != 0 || pads.size() / 2 > static_cast<std::size_t>(x.rank()))
    call.fail(fmt::format("{} numbers of padding for rank {}", pads.size(), x.rank()), "import_operand");
  for (std::size_t i = 0; i < pads.size() / 2; ++i) {
    const int axis = x.rank() - 1 - static_cast<int>(i);
    Dim low = pads[2 * i], high = pads[2 * i + 1];
    const auto cropped = [](Dim& pad) {
      if (importing::sign_of(pad) != importing::Sign::negative) return Dim(0);
      Dim removed = Dim(0) - pad;
      pad = 0;
      return removed;
    };
    const Dim first = cropped(low), last = x.size(axis).unnamed() - cropped(high);
    if (!first.is(0) || last != x.size(axis)) x = x.slice(axis, first, last);
    if (!low.is(0) || !high.is(0)) x = op(x, axis, low, high);
  }
  return x;
}

Results constant_pad(const OpCall& call) {
  Number value = 0;
  if (call.has(2)) {
    const std::optional<Number> given = number_of(call, 2);
    if (!given) call.fail("the value is computed at run time");
    value = *given;
  }
  return {surrounded(call, [&](const Tensor& x, int axis, const Dim& low, const Dim& high) {
    return padded(x, axis, low, high, value);
  })};
}

Results pad_with_mode(const OpCall& call) {
  const std::string mode = call.text("mode", "constant");
  if (mode == "constant") return constant_pad(call);
  const PadMode kind = mode == "reflect"     ? PadMode::reflect
                       : mode == "replicate" ? PadMode::replicate
                       : mode == "circular"  ? PadMode::circular
                                             : PadMode::zeros;
  if (kind == PadMode::zeros) call.fail(fmt::format("the argument mode is '{}'", mode), "import_attribute");
  return {surrounded(call, [&](const Tensor& x, int axis, const Dim& low, const Dim& high) {
    return pad(x, axis, {.low = low, .high = high, .mode = kind});
  })};
}

}  // namespace

std::span<const OpRecord> aten_joining_ops() {
  static constexpr OpRecord records[] = {
      aten("cat", "tensors", "dim", concat_op, Moves::all),
      aten("stack", "tensors", "dim", stack_op, Moves::all),
      aten("broadcast_tensors", "tensors", "", broadcast_tensors),
      aten("split.Tensor", "self split_size", "dim", split_op),
      aten("split.sizes", "self split_size", "dim", split_with_sizes),
      aten("split_with_sizes", "self split_sizes", "dim", split_with_sizes),
      aten("chunk", "self", "chunks dim", chunk_op),
      aten("unbind.int", "self", "dim", unbind),
      aten("repeat", "self repeats", "", repeat_op, Moves::first),
      aten("tile", "self dims", "", repeat_op, Moves::first),
      aten("repeat_interleave.self_Tensor", "self repeats output_size", "dim", repeat_by_numbers),
      aten("repeat_interleave.self_int", "self", "repeats dim output_size", repeat_interleave_op),
      aten("constant_pad_nd", "self pad value", "", constant_pad),
      aten("pad", "self pad value", "mode", pad_with_mode),
  };
  return records;
}

}  // namespace lathe::pt2
