#include "runtime/files/checkpoint.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <random>

#include "tests/runtime/files_scratch.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t elements = 20000;

HostTensor weights(std::int64_t step) {
  HostTensor tensor(f32, {elements});
  for (float& x : tensor.as<float>()) x = static_cast<float>(step);
  return tensor;
}

CheckpointMeta meta_of(std::int64_t step) {
  return {.step = step,
          .data_position = step * 64,
          .ir_hash = "abc",
          .config = {{"layers", "6"}},
          .values = {{"note", "\u00e4\n\"x\""}}};
}

fs::path save(const CheckpointStore& store, std::int64_t step) {
  const HostTensor w = weights(step);
  return store.save(meta_of(step), std::vector{view_of("w", w)});
}

void flip_a_byte(const fs::path& path, std::size_t at) {
  std::string bytes = slurp(path);
  bytes.at(at) ^= 1;
  spit(path, bytes);
}

}  // namespace

TEST_CASE("checkpoint: what is saved is loaded, and two are kept") {
  const ScratchFolder folder;
  const CheckpointStore store(folder / "run");
  CHECK_FALSE(store.load_newest().has_value());
  CHECK(store.list().empty());
  for (const std::int64_t step : {10, 20, 30}) {
    const fs::path path = save(store, step);
    const auto loaded = store.load_newest();
    REQUIRE(loaded.has_value());
    CHECK(loaded->folder == path);
    CHECK(loaded->meta == meta_of(step));
    CHECK(loaded->tensors.tensor("w").same_bits(weights(step)));
    CHECK(loaded->warnings.empty());
  }
  CHECK(store.list().size() == 2);
}

TEST_CASE("checkpoint: the newest is the one saved last, whatever its step") {
  const ScratchFolder folder;
  const CheckpointStore store(folder.path());
  save(store, 500);
  save(store, 10);
  CHECK(store.load_newest()->meta.step == 10);
  save(store, 10);
  CHECK(store.load_newest()->folder.filename() == "00000003-step-10");
}

TEST_CASE("checkpoint: damage is found, named, and passed over") {
  const ScratchFolder folder;
  const CheckpointStore store(folder.path());
  save(store, 1);
  const fs::path newest = save(store, 2);
  std::string culprit;
  SECTION("one bit of the tensors") {
    culprit = "tensors.safetensors";
    flip_a_byte(newest / culprit, fs::file_size(newest / culprit) - 1);
  }
  SECTION("truncated tensors") {
    culprit = "tensors.safetensors";
    fs::resize_file(newest / culprit, fs::file_size(newest / culprit) - 1);
  }
  SECTION("another state") {
    culprit = "state.json";
    flip_a_byte(newest / culprit, 20);
  }
  SECTION("no state") {
    culprit = "state.json";
    fs::remove(newest / culprit);
  }
  SECTION("no manifest") {
    culprit = "manifest.json";
    fs::remove(newest / culprit);
  }
  SECTION("half a manifest") {
    culprit = "manifest.json";
    fs::resize_file(newest / culprit, fs::file_size(newest / culprit) / 2);
  }
  SECTION("a manifest of another kind") {
    culprit = "manifest.json";
    spit(newest / culprit, R"({"format": 1, "files": {"tensors.safetensors": 3}})");
  }
  SECTION("a manifest from the future") {
    culprit = "manifest.json";
    spit(newest / culprit, R"({"format": 2, "files": {}})");
  }
  SECTION("a key twice") {
    culprit = "manifest.json";
    spit(newest / culprit, R"({"format": 1, "format": 1, "files": {}})");
  }
  SECTION("deep nesting") {
    culprit = "manifest.json";
    spit(newest / culprit, std::string(1'000'000, '['));
  }
  SECTION("a folder instead of a file") {
    culprit = "state.json";
    fs::remove(newest / culprit);
    fs::create_directory(newest / culprit);
  }
  const auto failure = failure_of([&] { (void)load_checkpoint(newest); });
  CHECK(failure.label == "checkpoint_invalid");
  CHECK_THAT(failure.text, Contains(culprit));
  const auto loaded = store.load_newest();
  REQUIRE(loaded.has_value());
  CHECK(loaded->meta.step == 1);
  REQUIRE(loaded->warnings.size() == 1);
  CHECK_THAT(loaded->warnings[0], Contains(culprit));

  fs::remove(store.list().back() / "manifest.json");
  const auto none = failure_of([&] { (void)store.load_newest(); });
  CHECK(none.label == "checkpoint_invalid");
  CHECK_THAT(none.text, Contains("00000001-step-1") && Contains("00000002-step-2"));
}

TEST_CASE("checkpoint: what cannot be saved leaves the store as it was") {
  const ScratchFolder folder;
  const CheckpointStore store(folder.path());
  save(store, 1);
  const HostTensor w = weights(2);
  const std::vector twice{view_of("w", w), view_of("w", w)};
  CHECK(failure_of([&] { store.save(meta_of(2), twice); }).label == "safetensors_duplicate");
  CheckpointMeta bad = meta_of(2);
  bad.values["x"] = "\xff";
  CHECK(failure_of([&] { store.save(bad, {}); }).label == "checkpoint_metadata");
  CHECK(store.load_newest()->meta.step == 1);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 2);  // the checkpoint and .lock
  CHECK(failure_of([&] { CheckpointStore(folder.path(), 0); }).label == "checkpoint_keep");
  spit(folder / "file", "");
  CHECK(failure_of([&] { save(CheckpointStore(folder / "file"), 1); }).label == "file_write");
}

TEST_CASE("checkpoint: a kill at any instant loses nothing that was saved") {
  const ScratchFolder folder;
  const CheckpointStore store(folder.path());
  save(store, 0);
  std::mt19937 random(7);
  std::int64_t acknowledged = 0, last_seen = 0;
  int interrupted = 0;
  for (int round = 0; round < 50; ++round) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      ::close(ends[0]);
      for (std::int64_t step = last_seen + 1;; ++step) {
        save(store, step);
        if (::write(ends[1], &step, sizeof step) != sizeof step) ::_exit(1);
      }
    }
    ::close(ends[1]);
    ::usleep(static_cast<useconds_t>(random() % 25000));
    REQUIRE(::kill(child, SIGKILL) == 0);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    for (std::int64_t step = 0; ::read(ends[0], &step, sizeof step) == sizeof step;) acknowledged = step;
    ::close(ends[0]);
    for (const auto& item : fs::directory_iterator(folder.path()))
      if (item.path().filename().string().starts_with(".work-")) {
        ++interrupted;
        break;
      }
    const auto loaded = store.load_newest();
    REQUIRE(loaded.has_value());
    REQUIRE(loaded->warnings.empty());
    REQUIRE(loaded->meta.step >= acknowledged);
    REQUIRE(loaded->meta.step >= last_seen);
    REQUIRE(loaded->meta == meta_of(loaded->meta.step));
    REQUIRE(loaded->tensors.tensor("w").same_bits(weights(loaded->meta.step)));
    last_seen = loaded->meta.step;
  }
  CHECK(interrupted > 0);
  save(store, last_seen + 1);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 3);  // two checkpoints and .lock
}
