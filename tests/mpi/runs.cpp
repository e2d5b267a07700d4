#include "tests/mpi/runs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

namespace lathe::test {

namespace fs = std::filesystem;

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words with_usual(Words words, const Options& usual) {
  for (const auto& [option, value] : usual)
    if (std::ranges::find(words, option) == words.end()) words.insert(words.end(), {option, value});
  return words;
}

Words training(const Scratch& scratch, const std::string& run, const Words& more) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "abc ab" + std::string(static_cast<std::size_t>(i % 5), 'd') + "\n";
  scratch.write("text.txt", text);
  const Options usual{{"--model", "gpt"}, {"--layers", "2"},  {"--d-model", "16"},  {"--heads", "4"},
                      {"--batch", "4"},   {"--context", "8"}, {"--dropout", "0.1"}, {"--steps", "12"},
                      {"--threads", "1"}, {"--sample", "0"}};
  return Words{"train", "--text", "text.txt", "-o", run} + with_usual(more, usual);
}

void run_to_end(const Scratch& scratch, int processes, const Words& words) {
  const RanMany ran = run_many(scratch, processes, words);
  INFO(ran.out << ran.err);
  REQUIRE(ran.ending == Ending{});
}

Checkpoint newest(const Scratch& scratch, const std::string& run) {
  auto checkpoint = CheckpointStore(scratch.path(run + "/checkpoints")).load_newest();
  REQUIRE(checkpoint.has_value());
  return std::move(*checkpoint);
}

void forget_newest(const Scratch& scratch, const std::string& run) {
  const auto all = CheckpointStore(scratch.path(run + "/checkpoints")).list();
  REQUIRE(all.size() == 2);
  fs::remove_all(all.front());
}

void check_losses(const Scratch& scratch, const std::string& run, const std::string& expected) {
  for (const char* name : {"history.loss", "history.validation_loss"}) {
    const HostTensor a = newest(scratch, run).tensors.tensor(name),
                     b = newest(scratch, expected).tensors.tensor(name);
    CAPTURE(run, name);
    REQUIRE(a.shape() == b.shape());
    REQUIRE(a.numel() > 0);
    for (std::int64_t i = 0; i < a.numel(); ++i) CHECK(std::fabs(a.get(i) - b.get(i)) <= 2e-5 * std::fabs(b.get(i)));
  }
}

void check_same_bits(const Scratch& scratch, const std::string& run, const std::string& expected) {
  const Checkpoint a = newest(scratch, run), b = newest(scratch, expected);
  CHECK(a.meta.step == b.meta.step);
  REQUIRE(a.tensors.names() == b.tensors.names());
  for (const std::string& name : a.tensors.names()) {
    CAPTURE(name);
    const HostTensor x = a.tensors.tensor(name), y = b.tensors.tensor(name);
    REQUIRE(x.bytes() == y.bytes());
    CHECK(std::memcmp(x.data(), y.data(), x.bytes()) == 0);
  }
}

Endless::Endless(const Scratch& scratch, const Words& words, const std::string& run)
    : Endless(scratch, command_of(scratch, 2, words), run) {}

Endless::Endless(const Scratch& scratch, const Command& command, const std::string& run)
    : mpirun_((scratch.write("out", ""), command)) {
  using namespace std::chrono_literals;
  const CheckpointStore checkpoints(scratch.path(run + "/checkpoints"));
  for (int i = 0; i < 6000 && checkpoints.list().empty(); ++i) REQUIRE_FALSE(mpirun_.wait_for(10ms).has_value());
  processes_ = descendants(mpirun_.id(), fs::path(LATHE_BINARY).filename().string());
  REQUIRE(processes_.size() == 2);
}

void Endless::check_ends(double seconds) {
  using namespace std::chrono_literals;
  const auto limit = std::chrono::milliseconds(static_cast<int>(seconds * 1000));
  const auto deadline = std::chrono::steady_clock::now() + limit;
  CHECK(mpirun_.wait_for(limit).value_or(Ending{}) != Ending{});
  const auto run = [&] { return std::ranges::any_of(processes_, is_running); };
  while (run() && std::chrono::steady_clock::now() < deadline) std::this_thread::sleep_for(10ms);
  CHECK_FALSE(run());
}

}  // namespace lathe::test
