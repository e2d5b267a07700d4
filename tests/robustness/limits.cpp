#include <fmt/core.h>
#include <unistd.h>

#include "tests/robustness/support/work_folder.h"

namespace lathe::robustness {

namespace {

struct Limit {
  const char* name;
  __rlimit_resource resource;
  std::vector<rlim_t> values;
  bool as_other_user = false;  ///< root does not have this limit
};

std::vector<rlim_t> geometric(rlim_t from, rlim_t to, double factor) {
  std::vector<rlim_t> values;
  for (double value = static_cast<double>(from); value <= static_cast<double>(to); value *= factor)
    values.push_back(static_cast<rlim_t>(value));
  return values;
}

std::vector<Limit> limits() {
  constexpr rlim_t kib = 1 << 10, mib = 1 << 20;
  return {{.name = "address space", .resource = RLIMIT_AS, .values = geometric(64 * mib, 2048 * mib, 1.15)},
          {.name = "stack", .resource = RLIMIT_STACK, .values = geometric(64 * kib, 8192 * kib, 1.4)},
          {.name = "open files", .resource = RLIMIT_NOFILE, .values = {3, 4, 5, 6, 7, 8, 10, 12, 16, 24}},
          {.name = "threads", .resource = RLIMIT_NPROC, .values = {1, 2, 3, 4, 6}, .as_other_user = true}};
}

std::vector<std::vector<std::string>> limited_commands() {
  return {{"dump", "--short", "gpt.lathe"},
          {"explain", "gpt.lathe"},
          {"explain", "--html", "--dim", "B=1,T=8", "gpt.lathe"},
          {"diff", "gpt.lathe", "small.lathe"},
          {"opt", "gpt.lathe"},
          {"dump", "--after", "asm", "small.lathe"},
          {"run", "--random", "--threads", "4", "--dim", "B=1,T=8", "gpt.lathe"},
          {"run", "--random", "--interpret", "--dim", "n=50", "small.lathe"},
          {"compile", "--emit", "cuda", "gpt.lathe"},
          training(2)};
}

}  // namespace

void attack_limits(Report& report) {
  const WorkFolder work(report.options());
  write_bytes(work / "small.lathe", small_program);
  write_bytes(work / "text.txt", training_text());
  judge(report, "gpt",
        work.run({"model", "gpt", "--layers", "2", "--d-model", "32", "--heads", "2", "--step", "-o", "gpt.lathe"}));
  std::vector<test::Command> all;
  std::vector<std::string> names;
  for (const Limit& limit : limits()) {
    if (limit.as_other_user && ::geteuid() != 0) {
      report.skip(fmt::format("limits of {}: need root to run as another user", limit.name));
      continue;
    }
    for (const rlim_t value : limit.values) {
      const auto limited = [&](std::vector<std::string> words) {
        test::Command command = work.command(std::move(words));
        command.limits = {{limit.resource, value}};
        if (limit.as_other_user) command.user = 65534;
        return command;
      };
      // If the program cannot even start, there is nothing to check.
      if (work.run(limited({"--version"})).ending != test::Ending{}) continue;
      for (const auto& words : limited_commands()) {
        all.push_back(limited(words));
        all.back().environment["LATHE_CACHE_DIR"] = "";
        names.push_back(fmt::format("{} {}: {} {}", limit.name, value, words[0], words.back()));
      }
    }
  }
  const auto wanted = static_cast<std::size_t>(report.options().count);
  const std::size_t step = wanted > 0 ? std::max<std::size_t>(1, all.size() / wanted) : 1;
  for (std::size_t i = report.options().seed % step; i < all.size(); i += step)
    judge(report, names[i], work.run(all[i]));
}

}  // namespace lathe::robustness
