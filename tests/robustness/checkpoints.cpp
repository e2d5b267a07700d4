#include <fmt/core.h>
#include <sys/stat.h>

#include "ir/support/error.h"
#include "runtime/files/checkpoint.h"
#include "runtime/files/sha256.h"
#include "tests/robustness/support/batch.h"
#include "tests/robustness/support/folder.h"
#include "tests/robustness/support/mutate.h"

namespace lathe::robustness {

namespace {

namespace fs = std::filesystem;

HostTensor weights(std::int64_t step) {
  HostTensor tensor(f32, {6});
  for (std::int64_t i = 0; i < 6; ++i) tensor.set(i, static_cast<double>(step) + 0.5 * static_cast<double>(i));
  return tensor;
}

CheckpointMeta meta(std::int64_t step) {
  return {
      .step = step, .data_position = step, .ir_hash = "abc", .config = {{"layers", "2"}}, .values = {{"seed", "1"}}};
}

fs::path save(const CheckpointStore& store, std::int64_t step) {
  const HostTensor w = weights(step), losses = HostTensor::from({2}, {1, 2}, f64);
  return store.save(meta(step), std::vector{view_of("w", w)}, std::vector{view_of("losses", losses)});
}

/// A store of steps 1 and 2, the newer of which is modified, and its original contents.
class Target {
 public:
  Target() : store_(folder_ / "run") {
    save(store_, 1);
    newest_ = save(store_, 2);
    for (const char* name : names) files_[name] = read_bytes(newest_ / name);
  }

  static constexpr const char* names[] = {"tensors.safetensors", "state.json", "manifest.json"};
  const CheckpointStore& store() const { return store_; }
  const fs::path& newest() const { return newest_; }
  const std::string& original(const std::string& name) const { return files_.at(name); }

  void restore() const {
    for (const auto& [name, bytes] : files_) {
      std::error_code ignored;
      if (fs::symlink_status(newest_ / name).type() != fs::file_type::regular)
        fs::remove_all(newest_ / name, ignored);
      write_bytes(newest_ / name, bytes);
    }
  }

 private:
  Folder folder_;
  CheckpointStore store_;
  fs::path newest_;
  std::map<std::string, std::string> files_;
};

/// Returns the manifest for these two files.
std::string manifest_of(const std::string& tensors, const std::string& state) {
  const auto entry = [](const std::string& bytes) {
    return fmt::format("{{\"bytes\": {}, \"sha256\": \"{}\"}}", bytes.size(), sha256_hex(bytes));
  };
  return fmt::format("{{\"format\": 1, \"files\": {{\"tensors.safetensors\": {}, \"state.json\": {}}}}}",
                     entry(tensors), entry(state));
}

/// Replaces a file with nothing, a folder, a dangling link or a link to itself, a pipe or a device.
void put_other_kind(Mutator& mutator, const fs::path& path) {
  fs::remove(path);
  switch (mutator.below(6)) {
    case 1: fs::create_directory(path); break;
    case 2: fs::create_symlink("nowhere", path); break;
    case 3: fs::create_symlink(path.filename(), path); break;
    case 4: ::mkfifo(path.c_str(), 0600); break;
    case 5: fs::create_symlink("/dev/zero", path); break;
    default: break;
  }
}

/// Modifies one file of the newest checkpoint. Half the time the manifest is updated to match, so that only the
/// contents are wrong.
void change(const Target& target, std::uint64_t seed) {
  Mutator mutator(seed);
  const std::string name = Target::names[mutator.below(3)];
  if (mutator.one_in(20)) return put_other_kind(mutator, target.newest() / name);
  const std::string text = mutator.any_kind(target.original(name), target.original("state.json"));
  write_bytes(target.newest() / name, text);
  if (name == "manifest.json" || mutator.one_in(2)) return;
  const bool state = name == "state.json";
  write_bytes(target.newest() / "manifest.json", manifest_of(state ? target.original("tensors.safetensors") : text,
                                                             state ? text : target.original("state.json")));
}

bool same_as_original(const Checkpoint& found, std::int64_t step) {
  return found.meta == meta(step) && found.tensors.contains("w") &&
         found.tensors.tensor("w").same_bits(weights(step));
}

/// Checks that the newest checkpoint found is the older one, unchanged, or the modified one if its manifest matches.
Answer check(const Target& target, std::uint64_t seed) {
  target.restore();
  change(target, seed);
  const auto found = target.store().load_newest();
  if (!found) throw Wrong("no checkpoint was found");
  const bool newest = found->folder == target.newest();
  if (!newest && (!same_as_original(*found, 1) || found->warnings.size() != 1))
    throw Wrong("the older checkpoint is not intact");
  if (found->meta.step < 0 || found->meta.data_position < 0) throw Wrong("a count is negative");
  for (const std::string& tensor : found->tensors.names()) static_cast<void>(found->tensors.tensor(tensor));
  return newest ? Answer::taken : Answer::refused;
}

}  // namespace

void attack_checkpoints(Report& report) {
  const Target target;
  try_mutants(report, 2000,
              {.make = [](std::uint64_t seed) { return fmt::format("seed {}\n", seed); },
               .check = [&](std::uint64_t seed, const std::string&) { return check(target, seed); },
               .ending = ".txt"});
  // Whatever the last modification was, the next save must succeed and be found.
  save(target.store(), 3);
  const auto found = target.store().load_newest();
  if (!found || !same_as_original(*found, 3))
    report.fail("after", "the checkpoint saved after the attack is not found");
}

}  // namespace lathe::robustness
