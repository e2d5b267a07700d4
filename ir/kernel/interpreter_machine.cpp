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

/// The rows of a tile that a thread reads: 16 elements each.
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

}  // namespace

void multiply_tiles(const Instruction& mma, const TilePlace& left, const TilePlace& right, int lane,
                    const Actor& actor, const Scalar* sums, Scalar* out) {
  const int columns = mma.right.rows;
  std::vector<int> own_rows, own_columns;
  std::vector<std::pair<std::size_t, std::size_t>> place;  // by sum: which of the thread's rows and columns
  const auto number_of = [](std::vector<int>& all, int wanted) {
    const auto found = std::find(all.begin(), all.end(), wanted);
    const auto number = static_cast<std::size_t>(found - all.begin());
    if (found == all.end()) all.push_back(wanted);
    return number;
  };
  for (int i = 0; i < mma.type.lanes; ++i) {
    const SumPlace at = sum_place(columns, lane, i);
    place.emplace_back(number_of(own_rows, at.row), number_of(own_columns, at.column));
  }
  const std::vector<Scalar> a = read_rows(mma.left, left, own_rows, actor),
                            b = read_rows(mma.right, right, own_columns, actor);
  for (std::size_t i = 0; i < place.size(); ++i) {
    Scalar sum = sums[i];
    for (std::size_t k = 0; k < mma_depth; ++k)
      sum = evaluate_fma(f32, a[place[i].first * mma_depth + k], b[place[i].second * mma_depth + k], sum);
    out[i] = sum;
  }
}

}  // namespace lathe::kernel
