#pragma once

#include <cstdint>
#include <vector>

#include "ir/support/tensors/host_tensor.h"
#include "tests/pretrained/cases/cases.h"

namespace lathe::test {

/// The prompts of a case and their continuations; empty if the case has none.
struct Continuations {
  using Ids = std::vector<std::int64_t>;
  std::vector<Ids> prompts, new_ids;
  std::vector<HostTensor> logits;  ///< [steps, vocab] each

  explicit Continuations(const HfCase& which);
};

/// Returns row `row` of ids [n, width], or all of [width].
std::vector<std::int64_t> ids_of(const HostTensor& ids, std::int64_t row = 0);

/// Returns row `row` of rows [n, width]: [width].
HostTensor row_of(const HostTensor& rows, std::int64_t row);

}  // namespace lathe::test
