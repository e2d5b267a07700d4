#include "tests/robustness/support/work_folder.h"

#include <fmt/core.h>

#include <span>

#include "runtime/files/sha256.h"

namespace lathe::robustness {

test::Command WorkFolder::command(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), lathe_.string());
  return {.words = std::move(arguments),
          .folder = folder_.path(),
          .environment = {{"LATHE_CACHE_DIR", (folder_ / "cache").string()}},
          .in = "/dev/null",
          .out = (folder_ / "stdout").string(),
          .err = (folder_ / "stderr").string(),
          .limits = {},
          .user = {}};
}

Ran WorkFolder::run(const test::Command& command) const {
  const auto text = [&](const std::string& path) {
    return path == folder_ / "stdout" || path == folder_ / "stderr" ? read_bytes(path) : std::string();
  };
  const test::Ending ending = test::run(command);
  return {ending, text(command.out), text(command.err)};
}

bool judge(Report& report, const std::string& name, const Ran& ran, std::string_view bytes) {
  report.count(ran.ending.to_string());
  const bool good = ran.ending.signal == 0 && ran.ending.status >= 0 && ran.ending.status <= 2;
  if (!good) report.fail(name, ran.ending.to_string() + ": " + ran.err.substr(0, 2000), bytes);
  return good;
}

std::string training_text() {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "abc ab" + std::string(static_cast<std::size_t>(i % 5), 'd') + "\n";
  return text;
}

std::vector<std::string> training(int steps, std::vector<std::string> more, const std::string& folder) {
  std::vector<std::string> words = {
      "train",     "--text",   "text.txt", "-o",        folder,      "--layers", "1",
      "--d-model", "8",        "--heads",  "1",         "--context", "8",        "--batch",
      "2",         "--sample", "5",        "--threads", "1",         "--steps",  std::to_string(steps)};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::optional<Checkpoint> newest_checkpoint(const WorkFolder& work) {
  return CheckpointStore(work / "run" / "checkpoints").load_newest();
}

std::string digest(const Checkpoint& checkpoint) {
  Sha256 hash;
  for (const std::string& name : checkpoint.tensors.names()) {
    hash.update(name);
    const HostTensor tensor = checkpoint.tensors.tensor(name);
    hash.update(std::span(tensor.data(), tensor.bytes()));
  }
  return to_hex(hash.finish());
}

}  // namespace lathe::robustness
