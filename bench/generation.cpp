// Lathe's worker process for bench/run_generation.py: reads prompts and generates tokens on demand.
//   bench_generation DIR [--dtype f32|bf16] [--cache f32|bf16] [--weights stored|q8] [--threads N] [--batch N]
//   [--mapped]
// Commands on standard input, one per line; the answer is in seconds unless noted:
//   prompt TOKENS     reads prompts of that many tokens, one per sequence of the batch
//   steps COUNT       adds COUNT tokens to each sequence, one at a time: total seconds
//   peak              FMA rate in flop/s, the best of bursts
//   bandwidth         read bandwidth in bytes/s, the median and the best of bursts
//   memory            resident bytes
#include <fmt/core.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <string>

#include "models/generation/cached_lm.h"
#include "models/pretrained/pretrained.h"
#include "runtime/host/peak.h"

namespace {

using namespace lathe;
using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::int64_t resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6)) * 1024;
  return 0;
}

void serve(CachedLm& lm, std::int64_t vocab, int threads, std::size_t batch) {
  std::vector<std::int64_t> tokens(batch, 1);
  for (std::string word; std::cin >> word;) {
    std::int64_t count = 0;
    if (word == "prompt") {
      std::cin >> count;
      std::vector<std::int64_t> prompt;
      for (std::int64_t i = 0; i < count; ++i) prompt.push_back((i * 7919 + 13) % vocab);
      const std::vector prompts(batch, prompt);
      const auto start = Clock::now();
      lm.start(prompts);
      fmt::print("{}\n", seconds_since(start));
    } else if (word == "steps") {
      std::cin >> count;
      const auto start = Clock::now();
      for (std::int64_t i = 0; i < count; ++i) {
        lm.step(tokens);
        for (std::int64_t& token : tokens) token = (token * 31 + 7) % vocab;
      }
      fmt::print("{}\n", seconds_since(start));
    } else if (word == "peak") {
      fmt::print("{}\n", measure_fma_peak(threads, 0.2).best);
    } else if (word == "bandwidth") {
      const Rate read = measure_read_bandwidth(threads, bandwidth_probe_bytes(), 0.06);
      fmt::print("{} {}\n", read.median, read.best);
    } else if (word == "memory") {
      fmt::print("{}\n", resident_bytes());
    }
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    SequenceModelOptions options;
    std::string folder;
    bool mapped = false;
    std::size_t batch = 1;
    pretrained::LoadOptions load;
    options.threads = 2;
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (word == "--dtype" && i + 1 < argc)
        options.dtype = *parse_dtype(argv[++i]);
      else if (word == "--threads" && i + 1 < argc)
        options.threads = std::stoi(argv[++i]);
      else if (word == "--batch" && i + 1 < argc)
        batch = std::stoul(argv[++i]);
      else if (word == "--weights" && i + 1 < argc)
        load.weights = std::string(argv[++i]) == "q8" ? pretrained::WeightFormat::q8 : load.weights;
      else if (word == "--cache" && i + 1 < argc)
        options.cache_dtype = parse_dtype(argv[++i]);
      else if (word == "--mapped")
        mapped = true;
      else
        folder = word;
    }
    auto loaded = pretrained::load_pretrained<pretrained::CausalLm>(folder, load);
    if (!mapped && fits_in_memory(loaded.weights)) loaded.weights.copy_to_memory();
    CachedLm lm(*loaded.model, loaded.weights, options);
    serve(lm, loaded.model->vocabulary_size(), options.threads, batch);
    return 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
