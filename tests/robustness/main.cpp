#include <fmt/core.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <set>

#include "ir/support/visible.h"
#include "tests/robustness/support/attack.h"

/// Hostile files and environments: Lathe must always give a result or a clear error (exit status 0, 1 or 2), never
/// die from a signal, and lose no data. docs/testing.md describes how to use this program.
namespace lathe::robustness {

namespace {

constexpr Attack all[] = {
    {"text", "mutants of IR text: parsed, printed, explained, differentiated, lowered and compiled", attack_text},
    {"forms", "mutants of fused graphs and programs: parsed, printed and verified", attack_forms},
    {"tensors", "mutants of .safetensors: opened, read, written again", attack_tensors},
    {"checkpoints", "two checkpoints, the newer one mutated: the newest valid one is found", attack_checkpoints},
    {"cache", "mutants of cache entries: never used, and unrelated files are kept", attack_cache},
    {"commands", "the command on mutants of its inputs and of its options", attack_commands},
    {"kills",
     "SIGKILL at random instants of a training: saved files are intact, and the run resumes to the same bits",
     attack_kills},
    {"saves",
     "SIGKILL and full disks during merges into the folder of another model: it holds the old model or the new one, "
     "or is rejected",
     attack_saves},
    {"streams", "standard streams that are closed, full or folders", attack_streams},
    {"folders", "full disks, file size limits, folders that are read-only or vanish", attack_folders},
    {"limits", "little memory and stack, few threads and open files", attack_limits},
    {"float-state", "a caller with another rounding mode, flushed subnormals or trapping exceptions",
     attack_float_state},
};

}  // namespace

std::span<const Attack> attacks() { return all; }

void Report::fail(const std::string& name, const std::string& what, std::string_view bytes) {
  ++failures_;
  fmt::print("FAILED {}: {}: {}\n", attack_, visible(name), visible_lines(what));
  if (!bytes.empty()) {
    const auto path = options_.out / fmt::format("{}-{}", attack_, name);
    std::ofstream(path, std::ios::binary) << bytes;
    fmt::print("  written to {}\n", path.string());
  }
  std::fflush(stdout);
}

void Report::skip(const std::string& what) {
  fmt::print("SKIP {}: {}\n", attack_, what);
  std::fflush(stdout);
}

std::string Report::summary() const {
  std::int64_t cases = 0;
  std::vector<std::string> parts;
  for (const auto& [how, count] : counts_) {
    cases += count;
    parts.push_back(fmt::format("{} {}", count, how));
  }
  return fmt::format("{}: {} cases: {}; {} failures\n", attack_, cases, fmt::join(parts, ", "), failures_);
}

void for_each_seed(const Options& options, std::int64_t by_default, const std::function<void(std::uint64_t)>& round) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(options.minutes * 60);
  const std::int64_t count = options.count > 0 ? options.count : by_default;
  for (std::int64_t i = 0; options.minutes > 0 ? Clock::now() < end : i < count; ++i)
    round(options.seed + static_cast<std::uint64_t>(i));
}

}  // namespace lathe::robustness

int main(int argc, char** argv) {
  using namespace lathe::robustness;
  Options options{.lathe = LATHE_BINARY, .out = "."};
  CLI::App app("Runs Lathe on hostile files and in hostile environments");
  std::vector<std::string> chosen;
  std::string list = "\nAttacks:\n";
  std::set<std::string> names;
  for (const Attack& attack : attacks()) {
    list += fmt::format("  {:<12} {}\n", attack.name, attack.doc);
    names.emplace(attack.name);
  }
  app.footer(list);
  app.add_option("ATTACK", chosen, "Attacks to run (default: all)")->check(CLI::IsMember(names));
  app.add_option("--seed", options.seed, "First seed");
  app.add_option("--count", options.count, "Number of cases per attack");
  app.add_option("--minutes", options.minutes, "Minutes per attack, instead of a count");
  app.add_option("--lathe", options.lathe, "The lathe command")->capture_default_str();
  app.add_option("--out", options.out, "Folder for failing inputs")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    std::int64_t failures = 0;
    for (const Attack& attack : attacks()) {
      if (!chosen.empty() && std::ranges::find(chosen, attack.name) == chosen.end()) continue;
      Report report(options, std::string(attack.name));
      attack.run(report);
      failures += report.failures();
      fmt::print("{}", report.summary());
      std::fflush(stdout);
    }
    return failures == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    fmt::print(stderr, "robustness: {}\n", error.what());
    return 2;
  }
}
