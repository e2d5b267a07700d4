#include "passes/cpu/rows/transposed_space.h"

#include <algorithm>
#include <bit>
#include <map>

#include "passes/lowering/elementwise/row_space.h"

namespace lathe::cpu {

using Kind = ElementwiseInstruction::Kind;

namespace {

constexpr int most_lanes = 16;            // tiles of at most 16 by 16 points
constexpr std::int64_t block_side = 64;   // per task: whole cache lines are used on both sides
constexpr std::int64_t most_side = 1024;  // if the other side is shorter

bool is_pointwise(const ElementwiseProgram& program) {
  return std::none_of(program.code.begin(), program.code.end(), [](const ElementwiseInstruction& i) {
    return i.kind == Kind::reduce || i.kind == Kind::column || i.kind == Kind::accumulator || i.kind == Kind::row_sum;
  });
}

/// Whether the program only moves elements from one place to another.
bool only_moves(const ElementwiseProgram& program) {
  return std::all_of(program.code.begin(), program.code.end(),
                     [](const ElementwiseInstruction& i) { return i.kind == Kind::load && i.args.empty(); });
}

/// Returns the dim of `space.outer` along which a load is contiguous, unless it is contiguous along the inner dims.
std::optional<int> contiguous_dim(const ElementwiseProgram& program, const ElementwiseInstruction& load,
                                  const RowSpace& space) {
  if (load.kind != Kind::load || load.form.coefficients.empty()) return std::nullopt;
  const Dim stride = LoopIndices::merged_stride(load.form, space.inner, program.domain);
  if (stride.is(0) || stride.is(1)) return std::nullopt;
  for (const int d : space.outer)
    if (load.form.coefficients[d].is(1) && !program.domain[d].is(1)) return d;
  return std::nullopt;
}

/// Returns the number of lanes of a register, or the next power of two of a smaller known extent.
int side_of(int lanes, const Dim& extent) {
  const auto known = extent.value();
  if (!known || *known >= lanes) return lanes;
  return static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(*known, 1))));
}

/// Returns the points along one side of a task: a multiple of the tile's, up to the extent.
std::int64_t block_of(std::int64_t wanted, int side, const Dim& extent) {
  const auto known = extent.value();
  const std::int64_t whole = known ? (*known + side - 1) / side : wanted / side;
  return side * std::max<std::int64_t>(1, std::min(wanted / side, whole));
}

void choose_sizes(const ElementwiseProgram& program, const VectorRegisters& vectors, TransposedSpace& space) {
  int widest = 1;
  for (const int i : space.loads) widest = std::max(widest, static_cast<int>(size_in_bytes(program[i].dtype)));
  int lanes = std::min(most_lanes, vectors.bits / 8 / widest);
  if (!only_moves(program)) lanes = std::min(lanes, program_lanes(program, vectors));
  const Dim rows = program.points(space.across), columns = program.points(space.along);
  space.rows = side_of(lanes, rows);
  space.lanes = side_of(lanes, columns);
  const std::int64_t row_side = block_of(block_side, space.rows, rows),
                     lane_side = block_of(block_side, space.lanes, columns);
  const auto lengthened = [](std::int64_t other) { return std::min(most_side, block_side * block_side / other); };
  space.row_block = static_cast<int>(block_of(std::max(block_side, lengthened(lane_side)), space.rows, rows));
  space.lane_block = static_cast<int>(block_of(std::max(block_side, lengthened(row_side)), space.lanes, columns));
}

}  // namespace

std::optional<TransposedSpace> transposed_space(const ElementwiseProgram& program, const VectorRegisters& vectors) {
  if (!is_pointwise(program)) return std::nullopt;
  const RowSpace rows(program, 0, vectors);
  std::map<int, std::vector<int>> loads;  // by the dim that they are contiguous along
  for (int i = 0; i < program.size(); ++i)
    if (const auto d = contiguous_dim(program, program[i], rows)) loads[*d].push_back(i);
  if (loads.empty()) return std::nullopt;
  const auto& [dim, most] = *std::max_element(
      loads.begin(), loads.end(), [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  TransposedSpace space{.rest = {}, .across = {dim}, .along = rows.inner, .loads = most};
  for (int d = dim - 1; d >= 0; --d) {
    space.across.insert(space.across.begin(), d);
    if (merges(program, space.across)) continue;
    space.across.erase(space.across.begin());
    break;
  }
  for (const int d : rows.outer)
    if (std::find(space.across.begin(), space.across.end(), d) == space.across.end()) space.rest.push_back(d);
  choose_sizes(program, vectors, space);
  if (space.rows == 1 || space.lanes == 1) return std::nullopt;
  return space;
}

}  // namespace lathe::cpu
