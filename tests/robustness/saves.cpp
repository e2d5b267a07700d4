#include <fmt/core.h>

#include <chrono>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/robustness/support/mount.h"
#include "tests/robustness/support/mutate.h"
#include "tests/robustness/support/work_folder.h"

namespace lathe::robustness {

namespace {

namespace fs = std::filesystem;
using Contents = std::map<std::string, std::string>;  // file contents by name

Contents visible_files(const fs::path& folder) {
  Contents found;
  std::error_code ignored;
  for (fs::directory_iterator item(folder, ignored), end; !ignored && item != end; item.increment(ignored))
    if (const std::string name = item->path().filename().string(); !name.starts_with('.'))
      found[name] = read_bytes(item->path());
  return found;
}

/// Merges of two adapters with a sharded model, and of one with another single-file model, alternating in one output
/// folder.
class Merges {
 public:
  explicit Merges(Report& report) : report_(report), work_(report.options()) {
    const fs::path cases = fs::path(LATHE_SOURCE_ROOT) / "tests" / "hf";
    const fs::path llama = cases / "models" / "llama" / "model", gpt2 = cases / "models" / "gpt2" / "model",
                   adapter = cases / "adapters" / "llama_lora" / "adapter";
    fs::copy(adapter, work_ / "louder");
    auto config = nlohmann::json::parse(read_bytes(adapter / "adapter_config.json"));
    config["lora_alpha"] = 64;
    write_bytes(work_ / "louder/adapter_config.json", config.dump());
    merges_ = {{"merge", llama.string(), "--adapter", adapter.string()},
               {"merge", llama.string(), "--adapter", (work_ / "louder").string()},
               {"merge", gpt2.string(), "--adapter", (cases / "adapters" / "gpt2_lora" / "adapter").string()}};
    for (std::size_t i = 0; i < merges_.size(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      const std::string folder = fmt::format("expected{}", i);
      if (!judge(report_, "reference", work_.run(merge(i, folder)))) return;
      longest_ = std::max(
          longest_, std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start));
      expected_.push_back(visible_files(work_ / folder));
    }
  }

  bool is_ready() const { return expected_.size() == merges_.size(); }

  /// Kills a merge at a random time, and checks the files that it left.
  void kill_once(std::uint64_t seed) {
    Mutator random(seed);
    const std::string name = fmt::format("seed {}", seed);
    const std::size_t which = random.below(merges_.size());
    const Contents before = visible_files(work_ / "out");
    test::Process process(work_.command(merge(which, "out")));
    if (!process.wait_for(std::chrono::milliseconds(random.below(static_cast<std::size_t>(longest_.count()) + 1))))
      process.send(SIGKILL);
    const test::Ending ending = process.wait();
    report_.count(ending.signal == SIGKILL ? "merges killed" : "merges done");
    look(name, "out", before, expected_[which]);
    if (ending.signal != SIGKILL && ending.status != 0)
      report_.fail(name, ending.to_string() + ": " + read_bytes(work_ / "stderr"));
    if (random.one_in(4)) finish(name, random.below(merges_.size()));
  }

  void fill_disks() {
    for (const std::size_t kilobytes : {60, 100, 120, 140, 160, 180, 200, 220, 240}) {
      const std::string name = fmt::format("a disk of {} KiB", kilobytes);
      const Mount disk(work_ / "small", kilobytes);
      if (!disk) return report_.skip("full disks: no permission to mount a file system");
      for (const std::size_t which : {0, 1, 2, 0}) {
        const Contents before = visible_files(work_ / "small/out");
        const Ran ran = work_.run(merge(which, "small/out"));
        if (!judge(report_, name, ran)) continue;
        if (ran.ending.status == 1 && ran.err.find("No space left") == std::string::npos)
          report_.fail(name, "the error does not say that the disk is full: " + ran.err);
        look(name, "small/out", before, ran.ending.status == 0 ? expected_[which] : before);
      }
    }
  }

 private:
  std::vector<std::string> merge(std::size_t which, const std::string& folder) const {
    std::vector<std::string> words = merges_[which];
    words.insert(words.end(), {"-o", folder});
    return words;
  }

  void look(const std::string& name, const std::string& folder, const Contents& before, const Contents& after) {
    const Contents now = visible_files(work_ / folder);
    if (now == before || now == after) return;
    const Ran ran = work_.run({"model", folder, "-o", "/dev/null"});
    if (ran.ending.status != 1 || ran.err.find("interrupted") == std::string::npos)
      report_.fail(name, "a mix of two models' files is not rejected: " + ran.err);
    report_.count("rejected");
  }

  /// Checks that an undisturbed merge afterwards gives the same result as in a fresh folder.
  void finish(const std::string& name, std::size_t which) {
    const Ran ran = work_.run(merge(which, "out"));
    if (!judge(report_, name, ran)) return;
    if (ran.ending.status != 0 || visible_files(work_ / "out") != expected_[which])
      report_.fail(name, "a later merge does not give the expected model: " + ran.err);
    for (const auto& item : fs::directory_iterator(work_ / "out"))
      if (item.path().string().ends_with(".lathe-tmp")) report_.fail(name, "leftover file: " + item.path().string());
  }

  Report& report_;
  WorkFolder work_;
  std::vector<std::vector<std::string>> merges_;
  std::vector<Contents> expected_;
  std::chrono::milliseconds longest_{};
};

}  // namespace

void attack_saves(Report& report) {
  Merges merges(report);
  if (!merges.is_ready()) return;
  merges.fill_disks();
  for_each_seed(report.options(), 20, [&](std::uint64_t seed) { merges.kill_once(seed); });
}

}  // namespace lathe::robustness
