#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "tests/robustness/support/mount.h"
#include "tests/robustness/support/mutate.h"
#include "tests/robustness/support/work_folder.h"

namespace lathe::robustness {

namespace {

namespace fs = std::filesystem;

constexpr int steps = 12;
constexpr uid_t nobody = 65534;

std::vector<std::string> train() { return training(steps, {"--save-every", "1", "--evaluate-every", "5"}); }

/// A work folder with a text to train on, and the undisturbed result of the training.
class Scene {
 public:
  explicit Scene(Report& report) : report_(report), work_(report.options()) {
    write_bytes(work_ / "text.txt", training_text());
    write_bytes(work_ / "small.lathe", small_program);
    if (!judge(report, "reference", work_.run(train()))) return;
    expected_ = digest(*newest_checkpoint(work_));
    fs::remove_all(work_ / "run");
  }

  const WorkFolder& work() const { return work_; }
  Report& report() const { return report_; }

  /// Checks that the files of a disturbed run are intact, and that an undisturbed run completes the training.
  void check_resumes(const std::string& name) const {
    try {
      if (const auto found = newest_checkpoint(work_); found && !found->warnings.empty())
        report_.fail(name, "a checkpoint is corrupted: " + found->warnings.front());
    } catch (const std::exception& error) {
      report_.fail(name, error.what());
    }
    const Ran ran = work_.run(train());
    if (!judge(report_, name, ran)) return;
    const auto found = newest_checkpoint(work_);
    if (ran.ending.status != 0 || !found || digest(*found) != expected_)
      report_.fail(name, "the resumed training does not give the expected result: " + ran.err);
  }

 private:
  Report& report_;
  WorkFolder work_;
  std::string expected_;
};

void full_disks(const Scene& scene) {
  for (const std::size_t kilobytes : {4, 24, 48, 64, 80, 120, 200}) {
    const std::string name = fmt::format("a disk of {} KiB", kilobytes);
    const Mount disk(scene.work() / "run", kilobytes);
    if (!disk) return scene.report().skip("full disks: no permission to mount a file system");
    const Ran ran = scene.work().run(train());
    judge(scene.report(), name, ran);
    if (ran.ending.status == 1 && ran.err.find("No space left") == std::string::npos)
      scene.report().fail(name, "the error does not say that the disk is full: " + ran.err);
    disk.grow();
    scene.check_resumes(name);
  }
  fs::remove_all(scene.work() / "run");
  const Mount cache(scene.work() / "full", 16);
  test::Command command = scene.work().command({"run", "small.lathe", "--random", "--dim", "n=3"});
  command.environment["LATHE_CACHE_DIR"] = (scene.work() / "full").string();
  ::chmod((scene.work() / "full").c_str(), 0700);
  const Ran ran = scene.work().run(command);
  if (judge(scene.report(), "a full cache", ran) && ran.ending.status != 0)
    scene.report().fail("a full cache", "a command fails because its cache is full: " + ran.err);
}

void file_size_limits(const Scene& scene) {
  for (const rlim_t bytes : {0, 1, 100, 1000, 3000, 8000, 20000}) {
    const std::string name = fmt::format("a file size limit of {} bytes", bytes);
    write_bytes(scene.work() / "out.safetensors", "old");
    // The command's output goes to files too, so these are the same for all limits.
    test::Command training = scene.work().command(train()),
                  writer = scene.work().command(
                      {"run", "small.lathe", "--random", "--dim", "n=200", "-o", "out.safetensors"});
    for (test::Command* command : {&training, &writer}) {
      command->limits = {{RLIMIT_FSIZE, bytes}};
      command->out = command->err = "/dev/null";
    }
    judge(scene.report(), name, scene.work().run(training));
    scene.check_resumes(name);
    fs::remove_all(scene.work() / "run");
    const Ran ran = scene.work().run(writer);
    judge(scene.report(), name, ran);
    if (ran.ending.status != 0 && read_bytes(scene.work() / "out.safetensors") != "old")
      scene.report().fail(name, "a failed write changed the old output");
    for (const auto& item : fs::directory_iterator(scene.work().folder().path()))
      if (item.path().string().ends_with(".lathe-tmp"))
        scene.report().fail(name, "leftover file: " + item.path().string());
  }
}

/// Tests folders of another user, because root can write anywhere.
void folders_without_rights(const Scene& scene) {
  if (::geteuid() != 0) return scene.report().skip("read-only folders: need root to run as another user");
  const WorkFolder& work = scene.work();
  fs::permissions(work.folder().path(), fs::perms(0755));
  for (const char* name : {"closed", "closed/run"}) fs::create_directories(work / name);
  write_bytes(work / "closed/run/out.safetensors", "old");
  fs::permissions(work / "closed/run", fs::perms(0555));
  // Only root may have access to the build folder.
  const fs::path lathe = work / "lathe-of-all";
  fs::copy_file(work.command({}).words[0], lathe);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"run", "small.lathe", "--random", "--dim",
                                                                         "n=3", "-o", "closed/run/out.safetensors"},
                                                {"dump", "small.lathe", "-o", "closed/run/new.lathe"},
                                                training(2, {}, "closed/run"),
                                                training(2, {}, "closed/new")}) {
    test::Command command = work.command(words);
    command.user = nobody;
    command.words[0] = lathe.string();
    command.environment["LATHE_CACHE_DIR"] = (work / "closed").string();
    // Streams are opened before the process changes its user.
    const Ran ran = work.run(command);
    const std::string name = "read-only folder: " + words.back();
    if (judge(scene.report(), name, ran) && ran.ending.status != 1)
      scene.report().fail(name, "exit status 0, although nothing could be written");
  }
  if (read_bytes(work / "closed/run/out.safetensors") != "old")
    scene.report().fail("read-only folder", "a file has changed");
  if (const Mount disk(work / "frozen", 64); disk) {
    disk.make_read_only();
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"dump", "small.lathe", "-o", "frozen/x.lathe"}, training(2, {}, "frozen"),
          training(2, {}, "frozen/run")}) {
      const Ran ran = work.run(words);
      const std::string name = "read-only disk: " + words.back();
      if (judge(scene.report(), name, ran) && ran.ending.status != 1)
        scene.report().fail(name, "exit status 0, although nothing could be written");
    }
  } else {
    scene.report().skip("read-only disks: no permission to mount a file system");
  }
}

/// Removes a part of the output folder at a random time during training.
void vanishing_folders(const Scene& scene) {
  static constexpr const char* parts[] = {"run",          "run/checkpoints", "run/.lock", "run/checkpoints/.lock",
                                          "run/loss.svg", "cache",           "text.txt"};
  for_each_seed(scene.report().options(), 20, [&](std::uint64_t seed) {
    Mutator random(seed);
    const std::string part = parts[random.below(std::size(parts))],
                      name = fmt::format("{} is removed, seed {}", part, seed);
    const WorkFolder& work = scene.work();
    test::Process process(work.command(train()));
    static_cast<void>(process.wait_for(std::chrono::milliseconds(random.below(400))));
    std::error_code ignored;
    fs::remove_all(work / part, ignored);
    if (random.one_in(3) && part != "text.txt")
      write_bytes(work / "in-its-work", ""), fs::rename(work / "in-its-work", work / part, ignored);
    const test::Ending ending = process.wait();
    judge(scene.report(), name, {ending, {}, read_bytes(work / "stderr")});
    for (const char* each : parts)
      if (fs::is_regular_file(work / each, ignored) && fs::file_size(work / each) == 0)
        fs::remove(work / each, ignored);
    write_bytes(work / "text.txt", training_text());
    scene.check_resumes(name);
    fs::remove_all(work / "run", ignored);
  });
}

}  // namespace

void attack_folders(Report& report) {
  const Scene scene(report);
  full_disks(scene);
  file_size_limits(scene);
  folders_without_rights(scene);
  vanishing_folders(scene);
}

}  // namespace lathe::robustness
