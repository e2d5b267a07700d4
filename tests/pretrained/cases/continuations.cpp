#include "tests/pretrained/cases/continuations.h"

#include <fmt/core.h>

namespace lathe::test {

Continuations::Continuations(const HfCase& which) {
  const SafetensorsFile inputs = which.inputs(), expected = which.expected();
  for (int i = 0; inputs.contains(fmt::format("prompt{}", i)); ++i) {
    prompts.push_back(ids_of(inputs.tensor(fmt::format("prompt{}", i))));
    new_ids.push_back(ids_of(expected.tensor(fmt::format("new_ids{}", i))));
    logits.push_back(expected.tensor(fmt::format("new_logits{}", i)));
  }
}

std::vector<std::int64_t> ids_of(const HostTensor& ids, std::int64_t row) {
  const std::int64_t width = ids.shape().back();
  std::vector<std::int64_t> found;
  for (std::int64_t i = 0; i < width; ++i) found.push_back(ids.get_int(row * width + i));
  return found;
}

HostTensor row_of(const HostTensor& rows, std::int64_t row) {
  const std::int64_t width = rows.shape().back();
  HostTensor made(rows.dtype(), {width});
  for (std::int64_t i = 0; i < width; ++i) made.set(i, rows.get(row * width + i));
  return made;
}

}  // namespace lathe::test
