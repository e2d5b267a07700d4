#include "frontend/train/optimizers/eight_bit/dynamic_map.h"

#include <array>
#include <cmath>

#include "frontend/ops/ops.h"

namespace lathe::detail {

namespace {

constexpr int decades = 7;

/// A decade: its upper end and the number of its cells.
struct Decade {
  double top, cells;
};

std::array<Decade, decades> decades_of(const DynamicMap& map) {
  std::array<Decade, decades> all{};
  for (int b = 0; b < decades; ++b) all[b] = {std::pow(10, b - 6), std::ldexp(1, map.has_sign ? b : b + 1)};
  return all;
}

/// Per element, the decade of a code or value: the last one for which `belongs` is true.
struct ChosenDecade {
  Tensor top, cells;
};

template <class Belongs>
ChosenDecade choose_decade(const DynamicMap& map, const Tensor& like, const Belongs& belongs) {
  const auto all = decades_of(map);
  const Tensor zeros = like * 0.0;
  ChosenDecade chosen{zeros + all[0].top, zeros + all[0].cells};
  for (int b = 1; b < decades; ++b) {
    const Tensor here = belongs(all[b - 1], all[b]);
    chosen = {where(here, all[b].top, chosen.top), where(here, all[b].cells, chosen.cells)};
  }
  return chosen;
}

/// The code of cell 0 of a decade is its number of cells minus this.
double code_offset(const DynamicMap& map) { return map.has_sign ? 0 : 1; }

}  // namespace

Tensor DynamicMap::encode(const Tensor& x) const {
  const auto all = decades_of(*this);
  const Tensor size = abs(x);
  // The middle between the last value of a decade and the first value of the next.
  const ChosenDecade decade = choose_decade(
      *this, size, [&](const Decade& below, const Decade&) { return size > below.top * (1 + 0.9 / below.cells); });
  const Tensor cell = floor((size / decade.top - 0.1) / 0.9 * decade.cells);
  const Tensor code = maximum(minimum(cell, decade.cells - 1.0), 0.0) + decade.cells - code_offset(*this);
  const double least = all[0].top * (0.1 + 0.45 / all[0].cells) / 2, most = 1 - 0.225 / all[decades - 1].cells;
  const Tensor rounded = where(size > least, code, 0.0);
  if (!has_sign) return where(size > most, 255.0, rounded).to(u8);
  // 1 has the code -128; the largest negative value is that of the last cell.
  return where(x > most, -128.0, rounded * sign(x)).to(i8);
}

Tensor DynamicMap::decode(const Tensor& codes, DType dtype) const {
  const Tensor code = codes.to(dtype), size = abs(code) + code_offset(*this);
  const ChosenDecade decade =
      choose_decade(*this, size, [&](const Decade&, const Decade& own) { return size >= own.cells; });
  const Tensor value = decade.top * ((size - decade.cells + 0.5) / decade.cells * 0.9 + 0.1);
  const double one = has_sign ? -128 : 255;
  const Tensor exact = where(code == one, 1.0, where(code == 0.0, 0.0, value));
  return has_sign ? where(code == one, exact, exact * sign(code)) : exact;
}

}  // namespace lathe::detail
