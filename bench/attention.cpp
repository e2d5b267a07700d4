// Attention forward and backward: share of the FMA peak, fused compared with separate matmuls and softmax, and
// compared with a peer whose times are in a file.
//   bench_attention [--batch N] [--heads N] [--groups N] [--depth D] [--mask causal|none] [--window N]
//     [--dtype bf16|f16] [THREADS [SECONDS A ROW [PEER FILE or - [LENGTHS...]]]]
// A line of the peer's file: D LENGTH CAUSAL SECONDS, where the time is that of forward plus backward. The time of
// backward is the difference of both passes and forward only.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <tuple>

#include "bench/cases/op_cases.h"
#include "passes/program/program.h"
#include "runtime/compile.h"
#include "runtime/executable_program.h"
#include "runtime/host/peak.h"

namespace {

using namespace lathe;
using namespace lathe::bench;

struct Options {
  int threads = 2;
  double seconds = 0.3;  ///< per row of the table
  std::int64_t batch = 4;
  std::vector<std::int64_t> depths = {32, 64, 128, 256}, lengths = {16, 32, 64, 128, 256, 512, 1024, 2048};
  std::vector<bool> masks = {true, false};  ///< causal
  DType dtype = f32;
  std::int64_t heads = 12, groups = 1, window = 0;  ///< see AttentionShape
};
using Peer = std::map<std::tuple<std::int64_t, std::int64_t, bool>, double>;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Executable compiled(const OpCase& made, AttentionFusion attention, int threads) {
  Executable executable =
      compile(made.graph, {.threads = threads, .cache = nullptr, .pipeline = {}, .lower = {attention}});
  executable.parameters().set(made.states);
  executable.run({});
  return executable;
}

/// Returns the median seconds of each program. The programs alternate. A round of short runs repeats them, after an
/// uncounted warm-up because the threads have slept during the other programs' rounds.
std::vector<double> medians(std::vector<Executable>& programs, double seconds) {
  constexpr double turn = 1e-3;  // seconds
  std::vector<std::vector<double>> times(programs.size());
  const double start = now();
  do {
    for (std::size_t i = 0; i < programs.size(); ++i) {
      programs[i].run({});
      const double before = now();
      int runs = 0;
      do programs[i].run({});
      while (++runs < 16 && now() - before < turn);
      times[i].push_back((now() - before) / runs);
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

/// The automatic choice between plain and fused.
std::string choice(const OpCase& made, const Executable& plain, int threads) {
  const Executable free = compiled(made, AttentionFusion::automatic, threads);
  return program_of(free).launches.size() == program_of(plain).launches.size() ? "plain" : "fused";
}

void measure(const Options& options, const AttentionShape& shape, const Peer& peer) {
  const OpCase forward = attention_case(shape, false), both = attention_case(shape, true);
  std::vector<Executable> programs;
  for (const AttentionFusion attention : {AttentionFusion::required, AttentionFusion::off})
    for (const OpCase* made : {&forward, &both}) programs.push_back(compiled(*made, attention, options.threads));
  const double peak = measure_fma_peak(options.threads, 0.03).best;
  const std::vector<double> t = medians(programs, options.seconds);
  const double backward = std::max(t[1] - t[0], 1e-9);
  std::string ratio = "-";
  if (const auto at = peer.find({shape.d, shape.length, shape.causal}); at != peer.end())
    ratio = fmt::format("{:.2f}", at->second / t[1]);
  fmt::print("| {} | {} | {} | {:.3f} | {:.0f}% | {:.3f} | {:.0f}% | {:.2f} | {:.2f} | {}, {} | {} |\n", shape.d,
             shape.length, shape.causal ? "yes" : "no", 1e3 * t[0], 100 * forward.flops / t[0] / peak, 1e3 * backward,
             100 * (both.flops - forward.flops) / backward / peak, t[2] / t[0], t[3] / t[1],
             choice(forward, programs[2], options.threads), choice(both, programs[3], options.threads), ratio);
  std::fflush(stdout);
}

/// Parses the options and returns the remaining arguments.
std::vector<std::string> read_options(int argc, char** argv, Options& options) {
  std::vector<std::string> operands;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (word.rfind("--", 0) != 0) {
      operands.push_back(word);
      continue;
    }
    if (word == "--batch") options.batch = std::max(1, std::atoi(value.c_str()));
    if (word == "--heads") options.heads = std::max(1, std::atoi(value.c_str()));
    if (word == "--groups") options.groups = std::max(1, std::atoi(value.c_str()));
    if (word == "--window") options.window = std::max(0, std::atoi(value.c_str()));
    if (word == "--depth") options.depths = {std::max(1, std::atoi(value.c_str()))};
    if (word == "--mask") options.masks = {value == "causal"};
    if (word == "--dtype") options.dtype = value == "bf16" ? bf16 : value == "f16" ? f16 : f32;
    ++i;
  }
  return operands;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const std::vector<std::string> operands = read_options(argc, argv, options);
  if (!operands.empty()) options.threads = std::max(1, std::atoi(operands[0].c_str()));
  if (operands.size() > 1) options.seconds = std::atof(operands[1].c_str());
  const Peer peer = operands.size() > 2 ? read_peer(operands[2]) : Peer{};
  if (operands.size() > 3) options.lengths.clear();
  for (std::size_t i = 3; i < operands.size(); ++i)
    options.lengths.push_back(std::max(1, std::atoi(operands[i].c_str())));
  fmt::print(
      "| d | S | causal | forward ms | of peak | backward ms | of peak | unfused / fused, forward | both | chosen | "
      "peer / Lathe, both |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const std::int64_t d : options.depths)
    for (const bool causal : options.masks)
      for (const std::int64_t length : options.lengths)
        measure(options,
                {.batch = options.batch,
                 .heads = options.heads,
                 .length = length,
                 .d = d,
                 .causal = causal,
                 .dtype = options.dtype,
                 .groups = options.groups,
                 .window = options.window},
                peer);
}
