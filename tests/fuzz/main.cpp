#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "tests/fuzz/case_file.h"
#include "tests/fuzz/oracles/oracles.h"
#include "tests/fuzz/shrinker.h"
#include "tests/fuzz/texts/text_oracle.h"
#include "tests/support/programs/isolated.h"

/// Checks random graphs with every oracle, for a number of seeds or minutes, or replays cases from files. Failing
/// cases are reduced and written as IR text that --replay reads. docs/testing.md describes how to use this program.
namespace lathe::fuzz {

using test::isolated;
using test::kind_of;

namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  unsigned seed = 0;
  int count = 0;
  double minutes = 0;
  GraphKind kind;
  bool models = false, texts = false;
  Exposure exposure;
  unsigned limit = 60;  ///< CPU time limit of one check, in seconds
  int shrink = 120;     ///< seconds
  std::string out = ".";
  std::vector<std::string> oracles, replay;
};

class Fuzzer {
 public:
  explicit Fuzzer(Options options) : options_(std::move(options)) {
    for (const auto group : {graph_oracles(), compiled_oracles()})
      for (const Oracle& oracle : group)
        if (options_.oracles.empty() || std::count(options_.oracles.begin(), options_.oracles.end(), oracle.name))
          oracles_.push_back(&oracle);
  }

  /// Returns the number of failed cases.
  int run() {
    const auto start = Clock::now();
    const auto minutes = [&] { return std::chrono::duration<double>(Clock::now() - start).count() / 60; };
    if (options_.replay.empty()) {
      for (unsigned seed = options_.seed;
           options_.minutes > 0 ? minutes() < options_.minutes : seed < options_.seed + options_.count; ++seed)
        options_.texts ? text_model(seed) : generated(seed);
    }
    for (const std::string& path : options_.replay) replayed(path);
    fmt::print("{} cases, {} checks, {} failures in {:.1f} min\n", cases_, checks_, failures_, minutes());
    return failures_;
  }

  Case case_of(unsigned seed) const {
    Case made = options_.models ? model_case(seed) : random_case(seed, options_.kind);
    made.exposure = options_.exposure;
    return made;
  }

 private:
  void text_model(unsigned seed) {
    ++cases_;
    ++checks_;
    if (const auto complaint = isolated([&] { return text_alone(seed); }, options_.limit))
      failed(fmt::format("seed {}: {}\n{}", seed, *complaint, text_case(seed)));
  }

  void generated(unsigned seed) {
    const auto complaint = isolated(
        [&]() -> std::optional<std::string> {
          case_of(seed);
          return std::nullopt;
        },
        options_.limit);
    if (complaint) return failed(fmt::format("seed {}: making the graph {}", seed, *complaint));
    test(case_of(seed), fmt::format("seed-{}", seed), true);
  }

  void replayed(const std::string& path) {
    if (!std::filesystem::is_directory(path)) return test(read_case(path), path, options_.shrink > 0);
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (entry.path().extension() == ".lathe") files.push_back(entry.path().string());
    std::sort(files.begin(), files.end());
    for (const std::string& file : files) test(read_case(file), file, false);
  }

  /// One process checks everything; only failing cases are checked oracle by oracle.
  void test(const Case& from, const std::string& name, bool small) {
    ++cases_;
    checks_ += static_cast<int>(oracles_.size());
    const auto first = isolated([&] { return check_all(from); }, options_.limit * 3);
    if (!first) return;
    for (const Oracle* oracle : oracles_) {
      const auto complaint = isolated([&] { return oracle->check(from); }, options_.limit);
      if (!complaint) continue;
      failed(fmt::format("{}: {}: {}", name, oracle->name, *complaint));
      if (small) write_small(from, name, *oracle, *complaint);
      return;
    }
    failed(fmt::format("{}: fails only if all oracles run in one process: {}", name, *first));
  }

  std::optional<std::string> check_all(const Case& from) const {
    for (const Oracle* oracle : oracles_)
      if (const auto complaint = oracle->check(from)) return complaint;
    return std::nullopt;
  }

  void write_small(const Case& from, const std::string& name, const Oracle& oracle, const std::string& complaint) {
    const std::string kind = kind_of(complaint);
    const auto fails = [&](const Case& candidate) {
      const auto again = isolated([&] { return oracle.check(candidate); }, options_.limit);
      return again && kind_of(*again) == kind;
    };
    Case start = from;
    for (const Case& part : oracle.parts ? oracle.parts(from) : std::vector<Case>{})
      if (fails(part)) {
        start = part;
        break;
      }
    const Case small = shrink(start, fails, std::chrono::seconds(options_.shrink));
    const auto reason = isolated([&] { return oracle.check(small); }, options_.limit);
    const std::string text = case_text(small);
    const auto path = std::filesystem::path(options_.out) /
                      fmt::format("{}-{}.lathe", std::filesystem::path(name).stem().string(), oracle.name);
    std::ofstream(path) << text;
    fmt::print("shrunk case, written to {}:\n{}{}\n", path.string(), text, reason.value_or("no longer fails"));
    std::fflush(stdout);
  }

  void failed(const std::string& text) {
    ++failures_;
    fmt::print("FAILED {}\n", text);
    std::fflush(stdout);
  }

  Options options_;
  std::vector<const Oracle*> oracles_;
  int cases_ = 0, checks_ = 0, failures_ = 0;
};

std::string oracle_list() {
  std::string text = "\nOracles:\n";
  for (const auto group : {graph_oracles(), compiled_oracles()})
    for (const Oracle& oracle : group) text += fmt::format("  {:<10} {}\n", oracle.name, oracle.doc);
  return text;
}

}  // namespace

}  // namespace lathe::fuzz

int main(int argc, char** argv) {
  using namespace lathe::fuzz;
  Options options;
  CLI::App app("Checks invariants of random graphs");
  app.footer(oracle_list());
  bool print = false;
  app.add_option("--seed", options.seed, "First seed");
  app.add_option("--count", options.count, "Number of seeds");
  app.add_option("--minutes", options.minutes, "Minutes to run, instead of a count");
  app.add_option("--ops", options.kind.ops, "Number of ops of a graph before differentiation")->capture_default_str();
  app.add_flag("--wide", options.kind.wide, "Dims of up to a few hundred, for tiles, split-K and blocks");
  app.add_flag("--scaled", options.kind.scaled,
               fmt::format("Scale arguments by powers of ten from 1e{} to 1e{}", least_power, largest_power));
  app.add_flag("--models", options.models, "Small models instead of random graphs");
  const std::map<std::string, Exposure::Kind> exposures{
      {"some", Exposure::Kind::some}, {"every", Exposure::Kind::every}, {"alone", Exposure::Kind::alone}};
  app.add_flag("--texts", options.texts,
               "Random language models instead of graphs: each text alone, and with others in batches and caches");
  app.add_option(
         "--expose", options.exposure.kind,
         "Values that the oracle exposed requests: some random sets, every value in a small set, or each alone")
      ->transform(CLI::CheckedTransformer(exposures))
      ->default_str("some");
  app.add_option("--parts", options.exposure.parts,
                 "Run one in PARTS of the sets of --expose; each seed selects others")
      ->check(CLI::PositiveNumber);
  app.add_option("--oracle", options.oracles, "Oracles to run (default: all); may be repeated");
  app.add_option("--replay", options.replay,
                 "Check the given files, or all files of the given folders, instead of random graphs");
  app.add_option("--out", options.out, "Folder for failing cases")->capture_default_str();
  app.add_option("--limit", options.limit, "CPU time limit of a check, in seconds")->capture_default_str();
  app.add_option("--shrink", options.shrink, "Seconds to shrink a failing case")->capture_default_str();
  app.add_flag("--print", print, "Print the graph of the seed without checking it");
  CLI11_PARSE(app, argc, argv);
  try {
    if (print && options.texts) {
      fmt::print("{}\n", text_case(options.seed));
      return 0;
    }
    if (print) {
      fmt::print("{}", case_text(Fuzzer(options).case_of(options.seed)));
      return 0;
    }
    return Fuzzer(options).run() == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "fuzz: {}\n", error.what());
    return 2;
  }
}
