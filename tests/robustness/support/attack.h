#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace lathe::robustness {

struct Options {
  std::uint64_t seed = 0;
  std::int64_t count = 0;       ///< cases per attack; 0: the attack's default
  double minutes = 0;           ///< minutes per attack, instead of a count
  std::filesystem::path lathe;  ///< the command
  std::filesystem::path out;    ///< folder for failing inputs
};

/// Statistics and findings of an attack.
class Report {
 public:
  Report(const Options& options, std::string attack) : options_(options), attack_(std::move(attack)) {}

  /// Counts a case with the outcome `how`, such as "status 1" or "rejected".
  void count(const std::string& how, std::int64_t cases = 1) { counts_[how] += cases; }
  /// Records a failure. If `bytes` can reproduce it, they are written to the output folder.
  void fail(const std::string& name, const std::string& what, std::string_view bytes = {});
  /// Records an attack that is not possible here, and why.
  void skip(const std::string& what);

  const Options& options() const { return options_; }
  std::int64_t failures() const { return failures_; }
  std::string summary() const;

 private:
  const Options& options_;
  std::string attack_;
  std::map<std::string, std::int64_t> counts_;
  std::int64_t failures_ = 0;
};

/// Calls `round` with seed, seed + 1, ... for as long as the options say, by default `by_default` times.
void for_each_seed(const Options& options, std::int64_t by_default, const std::function<void(std::uint64_t)>& round);

struct Attack {
  std::string_view name, doc;
  void (*run)(Report& report);
};
std::span<const Attack> attacks();

/// Mutants that are read in this process, many per second.
void attack_text(Report& report);
void attack_forms(Report& report);
void attack_tensors(Report& report);
void attack_checkpoints(Report& report);
void attack_cache(Report& report);
/// The command and its environment.
void attack_commands(Report& report);
void attack_kills(Report& report);
void attack_saves(Report& report);
void attack_streams(Report& report);
void attack_folders(Report& report);
void attack_limits(Report& report);
void attack_float_state(Report& report);

}  // namespace lathe::robustness
