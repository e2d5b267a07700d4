#include "passes/fusion/regions/gathered_reads.h"

#include <algorithm>

namespace lathe {

using ir::ValueId;

/// Returns the folded dims, outermost first, if there is a limit and the length of their lines is unknown; otherwise
/// nothing.
std::vector<int> GatheredReads::gathered_dims(const Region& region, int inner) const {
  std::vector<int> dims;
  for (int d = region.domain.rank() - inner; d < region.domain.rank(); ++d)
    if (!region.domain[d].is(1)) dims.push_back(d);
  const bool is_limited = most_ && dims.size() > 1 && !region.domain[dims.back()].value();
  return is_limited ? dims : std::vector<int>{};
}

/// Counts the reads of a member of `region`, from outside of it, that vary along a line and do not continue in the
/// next line at the same stride.
int GatheredReads::count(ValueId member, const std::vector<int>& space, int region,
                         const std::vector<int>& inner) const {
  const Shape& domain = plan_.regions[region].domain;
  return static_cast<int>(std::ranges::count_if(reads_[member], [&](const Read& read) {
    if (!read.affine || plan_.region(read.value) == region) return false;
    const Linear own = linear_form(read.index, graph_[read.value].type.strides, 0, static_cast<int>(space.size()));
    Linear form{.coefficients = std::vector<Dim>(static_cast<std::size_t>(domain.rank()), Dim(0))};
    for (std::size_t i = 0; i < space.size(); ++i)
      if (space[i] >= 0) form.coefficients[space[i]] = own.coefficients[i];
    return !form.coefficients[inner.back()].is(0) && !merges(form, inner, domain);
  }));
}

int GatheredReads::count(int region, const std::vector<int>& inner) const {
  int sum = 0;
  for (const ValueId member : plan_.regions[region].members)
    sum += count(member, plan_.space_dims(member), region, inner);
  return sum;
}

bool GatheredReads::allow(int region, int inner) const {
  const std::vector<int> dims = gathered_dims(plan_.regions[region], inner);
  return dims.empty() || count(region, dims) <= *most_;
}

bool GatheredReads::allow(int region, ValueId member, const std::vector<int>& space) const {
  const std::vector<int> dims = gathered_dims(plan_.regions[region], plan_.regions[region].folded_dims());
  return dims.empty() || count(region, dims) + count(member, space, region, dims) <= *most_;
}

bool GatheredReads::allow_all(int region, int reader) const {
  const Region &from = plan_.regions[region], &to = plan_.regions[reader];
  const std::vector<int> dims = gathered_dims(from, std::max(from.folded_dims(), to.folded_dims()));
  return dims.empty() || count(region, dims) + count(reader, dims) <= *most_;
}

}  // namespace lathe
