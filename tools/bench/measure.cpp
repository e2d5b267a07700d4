#include "tools/bench/measure.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "bench/memory_floor.h"
#include "runtime/host/seconds.h"

namespace lathe::bench {

namespace {

double seconds_of_runs(Executable& executable, const Tensors& inputs, int count) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) executable.run(inputs);
  return seconds_since(start) / count;
}

}  // namespace

Measured measure(Executable& executable, const Tensors& inputs, const std::function<double()>& reference,
                 double budget) {
  executable.run(inputs);
  const double once = std::max(seconds_of_runs(executable, inputs, 1), 1e-7);
  const int group = std::clamp(static_cast<int>(1e-3 / once), 1, 1000);
  const int groups = std::clamp(static_cast<int>(budget / once) / group, 3, 60);
  constexpr int most_rounds = 6;
  const int rounds = std::min(groups, most_rounds);
  std::vector<double> seconds, references;
  for (int round = 0; round < rounds; ++round) {
    references.push_back(reference());
    for (int i = round; i < groups; i += rounds) seconds.push_back(seconds_of_runs(executable, inputs, group));
  }
  return {median(seconds), median(references)};
}

}  // namespace lathe::bench
