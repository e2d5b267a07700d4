#include <fmt/core.h>

#include <array>

#include "models/import/ops/vision/grids.h"
#include "models/import/pt2/ops/aten_functions.h"
#include "models/import/pt2/ops/aten_ops.h"

/// Images that are read at the positions of a grid.
namespace lathe::pt2 {

namespace {

/// Returns the element of a list that a number argument names.
template <class T, std::size_t n>
T chosen(const OpCall& call, std::string_view name, const std::array<T, n>& all) {
  const std::int64_t number = call.integer(name);
  if (number < 0 || number >= static_cast<std::int64_t>(n))
    call.fail(fmt::format("the argument {} is {}", name, number), "import_attribute");
  return all.at(static_cast<std::size_t>(number));
}

Results grid_sampler(const OpCall& call) {
  using importing::GridMode;
  using importing::Outside;
  constexpr std::array modes{GridMode::linear, GridMode::round_last, GridMode::cubic};
  constexpr std::array paddings{Outside::zeros, Outside::border, Outside::reflection};
  const Tensor x = call.tensor(0);
  const GridMode mode = chosen(call, "interpolation_mode", modes);
  if (mode == GridMode::cubic && x.rank() != 4) call.fail("bicubic samples are those of 2 spatial dims");
  return {importing::sampled(call, x, call.tensor(1),
                             {.mode = mode,
                              .outside = chosen(call, "padding_mode", paddings),
                              .aligns_corners = call.flag("align_corners", false)})};
}

Results affine_grid_generator(const OpCall& call) {
  const Tensor theta = call.tensor(0);
  return {importing::affine_grid(call, theta, call.dims(1, "the size"), call.flag("align_corners", false), 0)};
}

}  // namespace

std::span<const OpRecord> aten_grid_ops() {
  constexpr std::string_view options = "interpolation_mode padding_mode align_corners";
  static constexpr OpRecord records[] = {
      aten("grid_sampler", "input grid", options, grid_sampler),
      aten("grid_sampler_2d", "input grid", options, grid_sampler),
      aten("grid_sampler_3d", "input grid", options, grid_sampler),
      aten("affine_grid_generator", "theta size", "align_corners", affine_grid_generator),
  };
  return records;
}

}  // namespace lathe::pt2
