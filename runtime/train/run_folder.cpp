#include "runtime/train/run_folder.h"

#include <fmt/core.h>
#include <unistd.h>

#include "ir/support/error.h"
#include "runtime/files/file_lock.h"

namespace lathe {

struct RunFolder::Run {
  std::filesystem::path path;
  Start start;
  FileLock lock;
  CheckpointStore checkpoints{path / "checkpoints"};
  CheckpointStore diverged{path / "diverged", 1, CheckpointStore::States::any};
  std::optional<Checkpoint> checkpoint = {};
};

namespace {

void create_folder(const std::filesystem::path& path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (failed || access(path.c_str(), W_OK) != 0)
    throw UserError(fmt::format("cannot write to {}{}", path.string(), failed ? ": " + failed.message() : ""),
                    "file_write", "give a folder that can be written");
}

FileLock take_folder(const std::filesystem::path& path) {
  const std::filesystem::path file = path / ".lock";
  std::optional<FileLock> lock = FileLock::take(file);
  if (!lock)
    throw UserError(fmt::format("{} is training in {}", FileLock::holder(file), path.string()), "train_locked",
                    "wait until it is done, end it, or give another folder");
  return std::move(*lock);
}

}  // namespace

RunFolder::RunFolder(std::filesystem::path path, Start start) {
  create_folder(path);
  FileLock lock = take_folder(path);
  auto run = std::make_shared<Run>(Run{.path = std::move(path), .start = start, .lock = std::move(lock)});
  run->checkpoints.remove_leftovers();
  run->diverged.remove_leftovers();
  if (start == Start::resume) run->checkpoint = run->checkpoints.load_newest();
  run_ = std::move(run);
}

const RunFolder::Run& RunFolder::run() const {
  if (!run_) throw UserError("this RunFolder is no folder", "train_folder", "make it as RunFolder(\"run\")");
  return *run_;
}

const std::filesystem::path& RunFolder::path() const { return run().path; }
bool RunFolder::starts_fresh() const { return run().start == Start::fresh; }
const std::optional<Checkpoint>& RunFolder::checkpoint() const { return run().checkpoint; }
const CheckpointStore& RunFolder::checkpoints() const { return run().checkpoints; }
const CheckpointStore& RunFolder::diverged() const { return run().diverged; }

}  // namespace lathe
