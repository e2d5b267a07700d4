#include <fmt/core.h>

#include <csignal>

#include "tests/robustness/support/mutate.h"
#include "tests/robustness/support/work_folder.h"

namespace lathe::robustness {

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// A training run that is killed and restarted repeatedly until it is done, and the same without kills.
class KilledTraining {
 public:
  static constexpr int steps = 40;

  explicit KilledTraining(Report& report) : report_(report), work_(report.options()) {
    write_bytes(work_ / "text.txt", training_text());
    const auto start = std::chrono::steady_clock::now();
    const Ran ran = work_.run(command());
    longest_ = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
    if (!judge(report_, "reference", ran)) return;
    expected_ = digest(*newest_checkpoint(work_));
    fs::remove_all(work_ / "run");
  }

  /// Kills a run at a random time, and checks the files that it left.
  void kill_once(std::uint64_t seed) {
    Mutator random(seed);
    if (random.one_in(8)) fs::remove_all(work_ / "cache");  // also kills compilation and cache writes
    test::Process process(command());
    const auto ended = process.wait_for(std::chrono::milliseconds(random.below(
        static_cast<std::size_t>(std::chrono::duration_cast<std::chrono::milliseconds>(longest_).count() + 1))));
    if (!ended) process.send(SIGKILL);
    const test::Ending ending = process.wait();
    report_.count(ending.signal == SIGKILL ? "killed" : ending.to_string());
    if (ending.signal != SIGKILL && ending.status != 0)
      return report_.fail(fmt::format("seed {}", seed), ending.to_string() + ": " + read_bytes(work_ / "stderr"));
    look(seed);
    if (ending.signal != SIGKILL) finished(seed);
  }

 private:
  test::Command command() const {
    return work_.command(training(steps, {"--save-every", "1", "--evaluate-every", "7"}));
  }

  /// Checks that saved checkpoints exist, are intact, and equal those of another run after the same step.
  void look(std::uint64_t seed) {
    const auto fail = [&](const std::string& what) { report_.fail(fmt::format("seed {}", seed), what); };
    const auto found = newest_checkpoint(work_);
    if (!found) {
      if (last_ > 0) fail(fmt::format("the checkpoint of step {} is missing", last_));
      return;
    }
    if (!found->warnings.empty()) fail("a checkpoint is corrupted: " + found->warnings.front());
    if (found->meta.step < last_)
      fail(fmt::format("the newest checkpoint is of step {}, after one of step {}", found->meta.step, last_));
    last_ = found->meta.step;
    const std::string now = digest(*found);
    const auto [before, first] = seen_.emplace(last_, now);
    if (!first && before->second != now)
      fail(fmt::format("the checkpoint of step {} has other bits than before", last_));
  }

  void finished(std::uint64_t seed) {
    const auto found = newest_checkpoint(work_);
    if (!found || digest(*found) != expected_)
      report_.fail(fmt::format("seed {}", seed), "the resumed run gives other bits than a run that was not killed");
    for (const auto& item : fs::recursive_directory_iterator(work_ / "run"))
      if (const std::string name = item.path().filename().string();
          name.starts_with(".work-") || name.ends_with(".lathe-tmp"))
        report_.fail(fmt::format("seed {}", seed), "leftover file: " + item.path().string());
    fs::remove_all(work_ / "run");
    last_ = 0;
    report_.count("resumed to the same bits");
  }

  Report& report_;
  WorkFolder work_;
  std::chrono::microseconds longest_{};
  std::string expected_;
  std::int64_t last_ = 0;
  std::map<std::int64_t, std::string> seen_;
};

/// Kills a process that keeps overwriting a file: the file must be the old or the new version.
void kill_writer(Report& report, const WorkFolder& work, std::uint64_t seed) {
  Mutator random(seed);
  const auto argument = [](const char* n) {
    return std::vector<std::string>{"run", "small.lathe", "--random",       "--interpret", "--dim",
                                    n,     "-o",          "out.safetensors"};
  };
  if (!fs::exists(work / "one.safetensors"))
    for (const auto& [n, name] : {std::pair("n=300", "one.safetensors"), std::pair("n=301", "two.safetensors")}) {
      if (!judge(report, "writer", work.run(argument(n)))) return;
      fs::rename(work / "out.safetensors", work / name);
    }
  const std::string one = read_bytes(work / "one.safetensors"), two = read_bytes(work / "two.safetensors");
  write_bytes(work / "out.safetensors", one);
  test::Process process(work.command(argument("n=301")));
  if (!process.wait_for(std::chrono::milliseconds(random.below(80)))) process.send(SIGKILL);
  report.count(process.wait().signal == SIGKILL ? "writers killed" : "writers done");
  const std::string now = read_bytes(work / "out.safetensors");
  if (now != one && now != two)
    report.fail(fmt::format("seed {}", seed), "an output file is neither the old nor the new version");
}

}  // namespace

void attack_kills(Report& report) {
  KilledTraining killed(report);
  const WorkFolder work(report.options());
  write_bytes(work / "small.lathe", small_program);
  for_each_seed(report.options(), 10, [&](std::uint64_t seed) {
    killed.kill_once(seed);
    if (seed % 4 == 0) kill_writer(report, work, seed);
  });
}

}  // namespace lathe::robustness
