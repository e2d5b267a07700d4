#include "ir/kernel/interpreter_machine.h"

#include <algorithm>

#include <fmt/core.h>

#include "ir/kernel/scalar_eval.h"

namespace lathe::kernel {

void CopyQueue::start(std::shared_ptr<Scratch> memory, const Target& to, std::int64_t first,
                      std::vector<Scalar> values, const Actor& actor) {
  for (std::size_t i = 0; i < values.size(); ++i) to.begin_copy(first + static_cast<std::int64_t>(i), actor);
  open_.push_back({std::move(memory), to, first, std::move(values)});
}

void CopyQueue::commit() {
  groups_.push_back(std::move(open_));
  open_.clear();
}

void CopyQueue::wait(int pending, const Actor& actor) {
  for (; groups_.size() > static_cast<std::size_t>(pending); groups_.pop_front())
    for (const Copy& copy : groups_.front())
      for (std::size_t i = 0; i < copy.values.size(); ++i)
        copy.to.end_copy(copy.first + static_cast<std::int64_t>(i), copy.values[i], actor);
}

namespace {

/// 16 elements of each row of a tile.
std::vector<Scalar> read_rows(const MatrixTile& tile, const TilePlace& place, const std::vector<int>& rows,
                              const Actor& actor) {
  if (place.first % 8 != 0 || place.line % 8 != 0)
    place.buffer.fail(fmt::format("an mma of {}[{} by {}], no multiples of 16 bytes", place.buffer.info->name,
                                  place.first, place.line),
                      "alignment");
  std::vector<Scalar> values;
  for (const int row : rows)
    for (int k = 0; k < mma_depth; ++k) {
      const std::int64_t along = tile.transposed ? row : k, across = tile.transposed ? k : row;
      values.push_back(place.buffer.load(place.first + across * place.line + along, actor));
    }
  return values;
}

/// `depth` elements of each row of panels.
std::vector<Scalar> read_panels(const MatrixTile& tile, int depth, const TilePlace& place,
                                const std::vector<int>& rows, const Actor& actor) {
  if (place.first % (panel_alignment / 2) != 0)
    place.buffer.fail(fmt::format("a wgmma of {}[{}], no multiple of {} bytes", place.buffer.info->name, place.first,
                                  panel_alignment),
                      "alignment");
  std::vector<Scalar> values;
  for (const int row : rows)
    for (int k = 0; k < depth; ++k) {
      const int inside = row % panel_side, at = tile.transposed ? panel_place(k, inside) : panel_place(inside, k);
      values.push_back(place.buffer.load(place.first + row / panel_side * panel_elements + at, actor));
    }
  return values;
}

/// The rows, or columns, of a thread's sums, and of each sum their numbers among these.
struct OwnSums {
  std::vector<int> rows = {}, columns = {};
  std::vector<std::pair<std::size_t, std::size_t>> places = {};

  void add(SumPlace at) { places.emplace_back(number_of(rows, at.row), number_of(columns, at.column)); }

 private:
  static std::size_t number_of(std::vector<int>& all, int wanted) {
    const auto found = std::find(all.begin(), all.end(), wanted);
    const auto number = static_cast<std::size_t>(found - all.begin());
    if (found == all.end()) all.push_back(wanted);
    return number;
  }
};

void multiply(const OwnSums& own, const std::vector<Scalar>& a, const std::vector<Scalar>& b, std::size_t depth,
              const Scalar* sums, Scalar* out) {
  for (std::size_t i = 0; i < own.places.size(); ++i) {
    Scalar sum = sums[i];
    for (std::size_t k = 0; k < depth; ++k)
      sum = evaluate_fma(f32, a[own.places[i].first * depth + k], b[own.places[i].second * depth + k], sum);
    out[i] = sum;
  }
}

}  // namespace

std::vector<Scalar> read_box(const MappedTensor& tensor, const std::vector<int>& box,
                             const std::vector<std::int64_t>& at, const Actor& actor) {
  tensor.from.check_alignment(16, tensor.offset);
  for (const std::int64_t stride : tensor.strides)
    if (stride % 8 != 0)
      tensor.from.fail(fmt::format("a map of {} by {}, no multiple of 16 bytes", tensor.from.info->name, stride),
                       "alignment");
  int lines = 1;
  for (std::size_t d = 1; d < box.size(); ++d) lines *= box[d];
  std::vector<Scalar> values(static_cast<std::size_t>(lines * panel_side));
  for (int line = 0; line < lines; ++line) {
    std::int64_t first = tensor.offset;
    bool inside = true;
    for (std::size_t d = 1, rest = static_cast<std::size_t>(line); d < box.size(); ++d) {
      const auto count = static_cast<std::size_t>(box[d]);
      const std::int64_t place = at[d] + static_cast<std::int64_t>(rest % count);
      inside = inside && place >= 0 && place < tensor.sizes[d];
      first += place * tensor.strides[d - 1];
      rest /= count;
    }
    for (int e = 0; inside && e < panel_side; ++e)
      if (const std::int64_t place = at[0] + e; place >= 0 && place < tensor.sizes[0])
        values[static_cast<std::size_t>(panel_place(line, e))] = tensor.from.load(first + place, actor);
  }
  return values;
}

void multiply_tiles(const Instruction& mma, const TilePlace& left, const TilePlace& right, int lane,
                    const Actor& actor, const Scalar* sums, Scalar* out) {
  OwnSums own;
  for (int i = 0; i < mma.type.lanes; ++i) own.add(sum_place(mma.right.rows, lane, i));
  multiply(own, read_rows(mma.left, left, own.rows, actor), read_rows(mma.right, right, own.columns, actor),
           mma_depth, sums, out);
}

void multiply_blocks(const TileMma& mma, const TilePlace& sums, const TilePlace& left, const TilePlace& right,
                     std::int64_t depth, const Actor& actor) {
  if (depth % tile_depth != 0)
    sums.buffer.fail(fmt::format("a tile_mma over {}, which is no multiple of {}", depth, tile_depth), "tile_shape");
  std::vector<Scalar> block(static_cast<std::size_t>(mma.rows * mma.columns));
  const auto place = [&](int m, int n) { return sums.first + m * sums.line + n; };
  const auto sum = [&](int m, int n) -> Scalar& { return block[static_cast<std::size_t>(m * mma.columns + n)]; };
  for (int m = 0; m < mma.rows; ++m)
    for (int n = 0; n < mma.columns && mma.continues; ++n) sum(m, n) = sums.buffer.load(place(m, n), actor);
  const auto add = [&](std::int64_t left_first, std::int64_t right_first) {
    std::vector<Scalar> a(static_cast<std::size_t>(mma.rows * tile_depth)),
        b(static_cast<std::size_t>(mma.columns * tile_depth));
    for (int m = 0; m < mma.rows; ++m)
      for (int k = 0; k < tile_depth; ++k)
        a[static_cast<std::size_t>(m * tile_depth + k)] = left.buffer.load(left_first + m * left.line + k, actor);
    for (int n = 0; n < mma.columns; ++n)
      for (int k = 0; k < tile_depth; ++k)
        b[static_cast<std::size_t>(n * tile_depth + k)] =
            right.buffer.load(right_first + k / 2 * right.line + 2 * n + k % 2, actor);
    for (int m = 0; m < mma.rows; ++m)
      for (int n = 0; n < mma.columns; ++n)
        sum(m, n) = evaluate_tile_sum(&a[static_cast<std::size_t>(m * tile_depth)],
                                      &b[static_cast<std::size_t>(n * tile_depth)], sum(m, n));
  };
  for (std::int64_t step = 0; step < depth / tile_depth; ++step) {
    if (!mma.sliced) {
      add(left.first + step * tile_depth, right.first + step * (tile_depth / 2) * right.line);
      continue;
    }
    const auto slice = [&](int s) { return (step * tile_slices + s) * slice_elements; };
    for (const auto& [l, r] : slice_products) add(left.first + slice(l), right.first + slice(r));
  }
  for (int m = 0; m < mma.rows; ++m)
    for (int n = 0; n < mma.columns; ++n) sums.buffer.store(place(m, n), sum(m, n), actor);
}

namespace {
OwnSums own_sums(const Wgmma& mma, int thread) {
  OwnSums own;
  for (int i = 0; i < mma.right.rows / 2; ++i) own.add(wgmma_sum_position(thread, i));
  return own;
}
}  // namespace

std::vector<Scalar> left_of_panel(const Wgmma& mma, const TilePlace& left, int thread, const Actor& actor) {
  return read_panels(mma.left, mma.depth, left, own_sums(mma, thread).rows, actor);
}

std::vector<Scalar> left_of_threads(const Wgmma& mma, std::span<const Scalar* const> held, int thread) {
  const auto depth = static_cast<std::size_t>(mma.depth);
  const OwnSums own = own_sums(mma, thread);
  std::vector<Scalar> rows(own.rows.size() * depth);
  for (int t = 0; t < warpgroup_threads; ++t)
    for (int i = 0; i < mma.depth / 2; ++i) {
      const SumPlace at = wgmma_sum_position(t, i);
      const auto row = std::find(own.rows.begin(), own.rows.end(), at.row);
      if (row == own.rows.end()) break;  // the first two places are of its two rows
      rows[static_cast<std::size_t>(row - own.rows.begin()) * depth + static_cast<std::size_t>(at.column)] =
          held[static_cast<std::size_t>(t)][i];
    }
  return rows;
}

void multiply_panels(const Wgmma& mma, const std::vector<Scalar>& left, const TilePlace& right, int thread,
                     const Actor& actor, Scalar* sums) {
  const OwnSums own = own_sums(mma, thread);
  multiply(own, left, read_panels(mma.right, mma.depth, right, own.columns, actor),
           static_cast<std::size_t>(mma.depth), sums, sums);
}

}  // namespace lathe::kernel
