// Attention forward and backward: share of the FMA peak, fused against products and softmax one by one, and against a
// peer where a file gives its times.
//   bench_attention [THREADS [SECONDS A ROW [PEER FILE or - [LENGTHS...]]]]
// A line of the peer's file: D LENGTH CAUSAL SECONDS, of forward and backward together. Backward is the difference of
// both passes and the forward one.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <tuple>

#include "bench/op_cases.h"
#include "runtime/executable.h"
#include "runtime/machine/peak.h"

namespace {

using namespace lathe;
using namespace lathe::bench;

struct Options {
  int threads = 2;
  double seconds = 0.3;  ///< for each row of the table
  std::vector<std::int64_t> lengths;
};
using Peer = std::map<std::tuple<std::int64_t, std::int64_t, bool>, double>;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Executable compiled(const OpCase& made, AttentionFusion attention, int threads) {
  Executable executable =
      compile(made.graph, {.threads = threads, .cache = nullptr, .pipeline = {}, .lower = {attention}});
  executable.set_states(made.states);
  executable.run({});
  return executable;
}

/// Median seconds of each, run in turns.
std::vector<double> medians(std::vector<Executable>& programs, double seconds) {
  std::vector<std::vector<double>> times(programs.size());
  const double start = now();
  do {
    for (std::size_t i = 0; i < programs.size(); ++i) {
      const double before = now();
      programs[i].run({});
      times[i].push_back(now() - before);
    }
  } while (now() - start < seconds || times[0].size() < 3);
  std::vector<double> found;
  for (auto& t : times) {
    std::sort(t.begin(), t.end());
    found.push_back(t[t.size() / 2]);
  }
  return found;
}

Peer read_peer(const std::string& path) {
  Peer peer;
  std::ifstream file(path);
  std::int64_t depth = 0, length = 0;
  bool causal = false;
  double seconds = 0;
  while (file >> depth >> length >> causal >> seconds) peer[{depth, length, causal}] = seconds;
  return peer;
}

void measure(const Options& options, const AttentionShape& shape, const Peer& peer) {
  const OpCase forward = attention_case(shape, false), both = attention_case(shape, true);
  std::vector<Executable> programs;
  for (const AttentionFusion attention : {AttentionFusion::automatic, AttentionFusion::off})
    for (const OpCase* made : {&forward, &both}) programs.push_back(compiled(*made, attention, options.threads));
  const double peak = measure_fma_peak(options.threads, 0.03).best;
  const std::vector<double> t = medians(programs, options.seconds);
  const double backward = std::max(t[1] - t[0], 1e-9);
  std::string ratio = "-";
  if (const auto at = peer.find({shape.d, shape.length, shape.causal}); at != peer.end())
    ratio = fmt::format("{:.2f}", at->second / t[1]);
  fmt::print("| {} | {} | {} | {:.3f} | {:.0f}% | {:.3f} | {:.0f}% | {:.2f} | {:.2f} | {} |\n", shape.d, shape.length,
             shape.causal ? "yes" : "no", 1e3 * t[0], 100 * forward.flops / t[0] / peak, 1e3 * backward,
             100 * (both.flops - forward.flops) / backward / peak, t[2] / t[0], t[3] / t[1], ratio);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (argc > 1) options.threads = std::max(1, std::atoi(argv[1]));
  if (argc > 2) options.seconds = std::atof(argv[2]);
  const Peer peer = argc > 3 ? read_peer(argv[3]) : Peer{};
  for (int i = 4; i < argc; ++i) options.lengths.push_back(std::max(1, std::atoi(argv[i])));
  if (options.lengths.empty()) options.lengths = {16, 32, 64, 128, 256, 512, 1024, 2048};
  fmt::print(
      "| d | S | causal | forward ms | of peak | backward ms | of peak | unfused / fused, forward | both | peer / "
      "Lathe, both |\n|---|---|---|---|---|---|---|---|---|---|\n");
  for (const std::int64_t d : {32, 64, 128, 256})
    for (const bool causal : {true, false})
      for (const std::int64_t length : options.lengths)
        measure(options, {.length = length, .d = d, .causal = causal}, peer);
}
