#include "frontend/ops/spatial/per_dim.h"

#include <fmt/core.h>

#include "ir/support/error.h"

namespace lathe::detail {

void require_spatial_dims(std::string_view op, const Tensor& x, int least, int most, const Where& at) {
  if (x.rank() >= least + 2 && x.rank() <= most + 2) return;
  const auto range = [&](int more) {
    return least == most ? fmt::format("{}", least + more) : fmt::format("{} to {}", least + more, most + more);
  };
  throw UserError(Location(at), op, fmt::format("x has {} dims, not {}", x.rank(), range(2)), "conv_rank",
                  fmt::format("give [batch, channels] and {} spatial dims", range(0)));
}

std::vector<std::int64_t> for_each_dim(std::string_view op, std::string_view name, const PerDim& numbers, int spatial,
                                       const Where& at, std::int64_t least) {
  const auto count = static_cast<std::size_t>(spatial);
  std::vector<std::int64_t> each = numbers.numbers;
  if (each.size() == 1) each.resize(count, each[0]);
  if (each.size() != count)
    throw UserError(Location(at), op,
                    fmt::format("{} has {} numbers for {} spatial dims", name, each.size(), spatial), "conv_options",
                    "give one number, or one for each dim after [batch, channels]");
  for (const std::int64_t number : each)
    if (number < least)
      throw UserError(Location(at), op, fmt::format("{} is {}", name, number), "conv_options",
                      fmt::format("give {} or more", least));
  return each;
}

}  // namespace lathe::detail
