// Memory-bound ops, compared with the time to move their bytes, which is measured next to each op.
//   bench_memory_bound [part of an op's name [rows columns [repeats]]]
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "bench/cases/memory_cases.h"
#include "runtime/compile.h"
#include "runtime/host/seconds.h"

namespace {

using namespace lathe;
using namespace lathe::bench;

struct Size {
  std::int64_t rows, columns;
};

/// The sizes of GPT-2 at 4 x 64 and 1 x 1024 tokens, and sizes that exceed all caches.
std::vector<Size> sizes_of(const std::string& op) {
  if (op.find("entropy") != std::string::npos) return {{256, 50257}, {1024, 50257}};
  if (op == "softmax" || op == "softmax backward") return {{3072, 64}, {12288, 1024}, {32768, 1024}};
  if (op.find("gelu") != std::string::npos) return {{256, 3072}, {1024, 3072}, {16384, 3072}};
  if (op.starts_with("transpose") || op == "take along") return {{1024, 1024}, {1000, 3000}, {8192, 4096}};
  if (op == "AdamW" || op == "global norm") return {{768, 768}, {3072, 768}, {50257, 768}};
  if (op.find("embedding") != std::string::npos) return {{256, 768}, {1024, 768}, {65536, 768}};
  return {{256, 768}, {1024, 768}, {65536, 768}};
}

/// Returns the seconds of a run, including binding, launches and the time between them.
double run_once(Executable& exe, const Tensors& inputs) {
  const auto start = std::chrono::steady_clock::now();
  (void)exe.run(inputs);
  return seconds_since(start);
}

void measure(const MemoryOp& op, const Size& size, int threads, int repeats) {
  MemoryCase made = op.make(size.rows, size.columns);
  double bytes = 0;
  for (const Sweep& sweep : made.sweeps) bytes += sweep.bytes();
  Executable exe = compile(made.graph, {.threads = threads});
  exe.parameters().set(made.states);
  made.states.clear();
  ThreadPool pool(threads);
  std::vector<double> seconds, floors;
  const int inner = bytes < 16e6 ? 20 : 3;
  for (int i = 0; i < 3; ++i) (void)run_once(exe, made.inputs);
  for (int i = 0; i < repeats; ++i) {
    floors.push_back(measure_floor(pool, made.sweeps, inner));
    for (int j = 0; j < inner; ++j) seconds.push_back(run_once(exe, made.inputs));
  }
  const double took = median(seconds), floor = median(floors);
  fmt::print("{:<26} {:>6} x {:<6} {}  {:9.1f} us {:9.1f} us {:6.1f} GB/s  {:5.2f}  {} launches\n", op.name,
             size.rows, size.columns, threads, 1e6 * took, 1e6 * floor, bytes / floor * 1e-9, took / floor,
             exe.summary().launches);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string part = argc > 1 ? argv[1] : "";
  const int repeats = argc > 4 ? std::max(1, std::atoi(argv[4])) : 3;
  fmt::print("{:<26} {:>15} threads    time        floor    bandwidth   ratio\n", "op", "size");
  for (const MemoryOp& op : memory_ops()) {
    if (op.name.find(part) == std::string::npos) continue;
    const std::vector<Size> sizes =
        argc > 3 ? std::vector<Size>{{std::atoll(argv[2]), std::atoll(argv[3])}} : sizes_of(op.name);
    for (const Size& size : sizes)
      for (const int threads : {1, 2}) measure(op, size, threads, repeats);
  }
} catch (const lathe::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
