#include <algorithm>
#include <vector>

#include "ir/ops/composites/composites.h"
#include "ir/ops/primitives/primitives.h"

namespace lathe::ir {

namespace {

constexpr const Op* records[] = {
#define LATHE_OP(name) &ops::name,
#include "ir/ops/ops.def"
};

bool by_name(const Op* a, const Op* b) { return a->name.value < b->name.value; }

const std::vector<const Op*>& sorted() {
  static const std::vector<const Op*> ops = [] {
    std::vector<const Op*> all(std::begin(records), std::end(records));
    std::sort(all.begin(), all.end(), by_name);
    return all;
  }();
  return ops;
}

}  // namespace

const Op* find_op(std::string_view name) {
  const auto& ops = sorted();
  const auto at = std::lower_bound(ops.begin(), ops.end(), name,
                                   [](const Op* op, std::string_view text) { return op->name.value < text; });
  return at != ops.end() && (*at)->name.value == name ? *at : nullptr;
}

std::span<const Op* const> all_ops() { return sorted(); }

}  // namespace lathe::ir
