#include "runtime/files/checkpoint.h"
#include "ir/support/tensors/complex_elements.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "runtime/files/file_lock.h"
#include "runtime/files/sha256.h"
#include "tests/runtime/files/files_scratch.h"

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

TEST_CASE("checkpoint: a saved checkpoint loads, and the last two are kept") {
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

TEST_CASE("checkpoint: the newest is the one saved last, for any step number") {
  const ScratchFolder folder;
  const CheckpointStore store(folder.path());
  save(store, 500);
  save(store, 10);
  CHECK(store.load_newest()->meta.step == 10);
  save(store, 10);
  CHECK(store.load_newest()->folder.filename() == "00000003-step-10");
}

TEST_CASE("checkpoint: damage is detected, named, and skipped") {
  const ScratchFolder folder;
  const CheckpointStore store(folder.path());
  save(store, 1);
  const fs::path newest = save(store, 2);
  std::string culprit;
  SECTION("one flipped bit in the tensors") {
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
  SECTION("missing state") {
    culprit = "state.json";
    fs::remove(newest / culprit);
  }
  SECTION("missing manifest") {
    culprit = "manifest.json";
    fs::remove(newest / culprit);
  }
  SECTION("truncated manifest") {
    culprit = "manifest.json";
    fs::resize_file(newest / culprit, fs::file_size(newest / culprit) / 2);
  }
  SECTION("a manifest of another kind") {
    culprit = "manifest.json";
    spit(newest / culprit, R"({"format": 1, "files": {"tensors.safetensors": 3}})");
  }
  SECTION("a manifest of a newer version") {
    culprit = "manifest.json";
    spit(newest / culprit, R"({"format": 2, "files": {}})");
  }
  SECTION("a duplicate key") {
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

/// Rewrites a checkpoint's file, and the manifest to match.
void replace_file(const fs::path& folder, const std::string& name, const std::string& text) {
  spit(folder / name, text);
  const std::string manifest = slurp(folder / "manifest.json");
  const auto at = manifest.find('"' + name + '"'), end = manifest.find('}', at);
  REQUIRE(end != std::string::npos);
  spit(folder / "manifest.json", manifest.substr(0, at) + '"' + name +
                                     "\": {\"bytes\": " + std::to_string(text.size()) + ", \"sha256\": \"" +
                                     sha256_hex(text) + "\"" + manifest.substr(end));
}

TEST_CASE("checkpoint: an impossible state is rejected, even if its digest is correct") {
  const ScratchFolder folder;
  const CheckpointStore store(folder.path());
  save(store, 1);
  const fs::path newest = save(store, 2);
  const std::string state = slurp(newest / "state.json");
  const auto with = [&](const std::string& name, const std::string& value) {
    const auto at = state.find('"' + name + '"'), end = state.find_first_of(",\n", at);
    REQUIRE(end != std::string::npos);
    return state.substr(0, at) + '"' + name + "\": " + value + state.substr(end);
  };
  std::string says;
  SECTION("a negative step") {
    replace_file(newest, "state.json", with("step", "-3"));
    says = "'step' is -3, which is negative";
  }
  SECTION("a negative position") {
    replace_file(newest, "state.json", with("data_position", "-1"));
    says = "'data_position' is -1, which is negative";
  }
  SECTION("a step of more than 63 bits") {
    replace_file(newest, "state.json", with("step", "18446744073709551615"));
    says = "'step' is 18446744073709551615, which is too large";
  }
  SECTION("a step that is not an integer") {
    replace_file(newest, "state.json", with("step", "2.5"));
    says = "'step' has the wrong type";
  }
  const auto failure = failure_of([&] { (void)load_checkpoint(newest); });
  CHECK(failure.label == "checkpoint_invalid");
  CHECK_THAT(failure.text, Contains("state.json") && Contains(says));
  CHECK(store.load_newest()->meta.step == 1);
}

TEST_CASE("checkpoint: states that are not finite are neither saved nor resumed") {
  const ScratchFolder folder;
  const CheckpointStore store(folder.path());
  const CheckpointStore inspected(folder.path(), 2, CheckpointStore::States::any);
  save(store, 1);
  for (const DType dtype : {f64, f32, bf16, f16, c64, c128})
    for (const double value : {NAN, INFINITY, -INFINITY}) {
      HostTensor bad(dtype, {3000, 2});
      if (is_complex(dtype))
        set_complex(bad, 4321, {1, value});
      else
        bad.set(4321, value);
      const HostTensor count = HostTensor::from_ints({2}, {-1, 7});
      const std::vector states{view_of("w", weights(2)), view_of("n", count), view_of("bad", bad)};
      const auto failure = failure_of([&] { store.save(meta_of(2), std::span(states).subspan(1)); });
      CHECK(failure.label == "checkpoint_not_finite");
      CHECK_THAT(failure.text, Contains("'bad' is ") && Contains("at [2160, 1]"));
      // It may be saved as a record, or as a state if the store allows it.
      store.save(meta_of(1), std::span(states).subspan(1, 1), std::span(states).subspan(2));
      CHECK(store.load_newest()->meta.step == 1);
      CHECK(store.load_newest()->records == std::vector<std::string>{"bad"});
      inspected.save(meta_of(2), std::span(states).subspan(1));
      const auto loaded = store.load_newest();
      REQUIRE(loaded.has_value());
      CHECK(loaded->meta.step == 1);
      REQUIRE(loaded->warnings.size() == 1);
      CHECK_THAT(loaded->warnings[0], Contains("step-2") && Contains("'bad' is ") && Contains("[2160, 1]"));
      CHECK(inspected.load_newest()->meta.step == 2);
    }
  HostTensor largest(f32, {2});
  largest.set(0, std::numeric_limits<float>::max());
  largest.set(1, std::numeric_limits<float>::denorm_min());
  store.save(meta_of(3), std::vector{view_of("w", largest)});
  CHECK(store.load_newest()->meta.step == 3);
}

TEST_CASE("checkpoint: the largest checkpoint number is an error, and does not wrap around") {
  const ScratchFolder folder;
  const CheckpointStore store(folder.path());
  const fs::path saved = save(store, 5);
  for (const std::string name : {"18446744073709551615-step-5", "18446744073709551614-step-5", "999999999999-step-5",
                                 "99999999999999999999999999-step-5"}) {
    fs::rename(saved, folder / name);
    for (const auto& use :
         {std::function<void()>([&] { save(store, 6); }), std::function<void()>([&] { (void)store.load_newest(); }),
          std::function<void()>([&] { (void)store.list(); })}) {
      const auto failure = failure_of(use);
      CHECK(failure.label == "checkpoint_number");
      CHECK_THAT(failure.text, Contains(name));
    }
    fs::rename(folder / name, saved);
  }
  fs::rename(saved, folder / "999999999998-step-5");
  CHECK(store.load_newest()->meta.step == 5);
  CHECK(failure_of([&] { save(store, 6); }).label == "checkpoint_number");
  CHECK(store.load_newest()->meta.step == 5);
}

TEST_CASE("checkpoint: only files that the store wrote are removed") {
  const ScratchFolder folder;
  const CheckpointStore store(folder.path());
  const fs::path first = save(store, 1), second = save(store, 2);
  spit(first / "notes.txt", "the best so far");
  fs::create_directory(folder / ".work-mine");
  fs::create_directory(folder / ".work-00000001-step-9");
  spit(folder / ".work-00000001-step-9" / "state.json", "{");
  spit(folder / ".work-00000001-step-9" / ".state.json.17-0.lathe-tmp", "{");
  fs::create_directory(folder / ".work-00000002-step-9");
  spit(folder / ".work-00000002-step-9" / "mine.txt", "");
  fs::create_directory(folder / "elsewhere");
  spit(folder / "elsewhere" / "state.json", "{}");
  fs::create_directory_symlink(folder / "elsewhere", folder / "00000000-step-0");
  for (const std::int64_t step : {3, 4, 5}) save(store, step);
  CHECK(slurp(first / "notes.txt") == "the best so far");
  CHECK(load_checkpoint(first).meta.step == 1);
  CHECK_FALSE(fs::exists(second));
  CHECK(fs::exists(folder / ".work-mine"));
  CHECK(fs::exists(folder / ".work-00000002-step-9" / "mine.txt"));
  CHECK_FALSE(fs::exists(folder / ".work-00000001-step-9"));
  CHECK(fs::exists(folder / "elsewhere" / "state.json"));
}

TEST_CASE(
    "checkpoint: remove_leftovers removes partial saves of a killed process, unless another process is saving") {
  const ScratchFolder folder;
  const CheckpointStore store(folder / "run"), nowhere(folder / "nowhere");
  nowhere.remove_leftovers();
  CHECK_FALSE(fs::exists(folder / "nowhere"));
  save(store, 1);
  const fs::path half = folder / "run" / ".work-00000002-step-2";
  fs::create_directory(half);
  spit(half / "tensors.safetensors", "half");
  {
    const auto lock = FileLock::take(folder / "run" / ".lock");
    REQUIRE(lock.has_value());
    store.remove_leftovers();
    CHECK(fs::exists(half));
  }
  store.remove_leftovers();
  CHECK_FALSE(fs::exists(half));
  CHECK(store.load_newest()->meta.step == 1);
}

TEST_CASE("checkpoint: a failed save leaves the store unchanged") {
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

TEST_CASE("checkpoint: a kill at any time loses no saved checkpoint") {
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
