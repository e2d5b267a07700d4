#include "runtime/files/checkpoint.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>
#include <utility>

#include "ir/support/error.h"
#include "runtime/files/atomic_file.h"
#include "runtime/files/strict_json.h"

namespace lathe {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view tensors_file = "tensors.safetensors", state_file = "state.json",
                           manifest_file = "manifest.json", work_prefix = ".work-";
constexpr std::uint64_t max_json_bytes = 64 << 20;
constexpr int format_version = 1;

struct Numbered {
  std::uint64_t number = 0;
  fs::path folder;
};

/// The number of a folder called "<number>-step-<step>".
std::optional<std::uint64_t> folder_number(const std::string& name) {
  std::uint64_t number = 0, step = 0;
  const char* const end = name.data() + name.size();
  const auto first = std::from_chars(name.data(), end, number);
  constexpr std::string_view middle = "-step-";
  if (first.ec != std::errc() || !std::string_view(first.ptr, end).starts_with(middle)) return std::nullopt;
  const auto second = std::from_chars(first.ptr + middle.size(), end, step);
  if (second.ec != std::errc() || second.ptr != end) return std::nullopt;
  return number;
}

/// Newest first.
std::vector<Numbered> numbered_folders(const fs::path& root) {
  std::vector<Numbered> found;
  std::error_code code;
  for (fs::directory_iterator item(root, code), end; !code && item != end; item.increment(code))
    if (const auto number = folder_number(item->path().filename().string())) found.push_back({*number, item->path()});
  if (code && code != std::errc::no_such_file_or_directory)
    throw UserError(fmt::format("cannot list {}: {}", root.string(), code.message()), "file_open");
  std::ranges::sort(found, std::greater(), &Numbered::number);
  return found;
}

/// Holds the right to change a store until destroyed, or the process dies.
FileDescriptor lock_store(const fs::path& root) {
  const fs::path path = root / ".lock";
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
  const auto fail = [&](std::string_view label, std::string_view why) {
    throw UserError(fmt::format("cannot lock {}: {}", path.string(), why), label);
  };
  if (!file.is_open()) fail("file_write", std::generic_category().message(errno));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) fail("file_write", std::generic_category().message(errno));
    if (std::chrono::steady_clock::now() > deadline)
      fail("checkpoint_locked", "another process has been saving there for 30 s");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return file;
}

/// Creates what is missing of the path, durably.
void create_folder(const fs::path& path) {
  std::error_code code;
  if (path.empty() || fs::is_directory(path, code)) return;
  create_folder(path.parent_path());
  fs::create_directory(path, code);
  if (code) throw UserError(fmt::format("cannot create {}: {}", path.string(), code.message()), "file_write");
  sync_directory(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

/// Removes a checkpoint so that a kill half-way leaves no folder that looks like one. Failure does no harm.
void discard(const fs::path& folder) {
  const fs::path hidden = folder.parent_path() / (std::string(work_prefix) + folder.filename().string());
  std::error_code ignored;
  fs::remove_all(hidden, ignored);
  fs::rename(folder, hidden, ignored);
  fs::remove_all(hidden, ignored);
}

/// Removes what a killed process left. The store is locked, so nobody is at work there.
void remove_leftovers(const fs::path& root) {
  std::vector<fs::path> leftovers;
  std::error_code ignored;
  for (fs::directory_iterator item(root, ignored), end; !ignored && item != end; item.increment(ignored))
    if (item->path().filename().string().starts_with(work_prefix)) leftovers.push_back(item->path());
  for (const fs::path& path : leftovers) fs::remove_all(path, ignored);
}

std::string state_text(const CheckpointMeta& meta) {
  const json state{{"format", format_version}, {"step", meta.step},     {"data_position", meta.data_position},
                   {"ir_hash", meta.ir_hash},  {"config", meta.config}, {"values", meta.values}};
  try {
    return state.dump(2) + "\n";
  } catch (const json::exception&) {
    throw UserError("the checkpoint's metadata is not UTF-8", "checkpoint_metadata");
  }
}

json manifest_entry(const AtomicFile::Written& written) {
  return {{"bytes", written.size}, {"sha256", to_hex(written.sha256)}};
}

AtomicFile::Written write_text(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  return file.commit();
}

[[noreturn]] void invalid(const fs::path& path, std::string_view why) {
  throw UserError(fmt::format("{}: {}", path.string(), why), "checkpoint_invalid");
}

/// A field of an object in `file`, of type T.
template <class T>
T field(const json& object, const char* name, const fs::path& file) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end()) invalid(file, fmt::format("'{}' is missing", name));
  const bool fits = std::is_integral_v<T>            ? found->is_number_integer()
                    : std::is_same_v<T, std::string> ? found->is_string()
                                                     : found->is_object();
  if (!fits) invalid(file, fmt::format("'{}' has the wrong type", name));
  try {
    return found->get<T>();
  } catch (const json::exception&) {
    invalid(file, fmt::format("'{}' has the wrong type", name));
  }
}

void check_format(const json& object, const fs::path& file) {
  const auto version = field<std::int64_t>(object, "format", file);
  if (version != format_version)
    invalid(file, fmt::format("format {} is not the {} that this program knows", version, format_version));
}

CheckpointMeta read_state(const fs::path& file) {
  const json state = parse_strict_json(read_file(file, max_json_bytes), file.string());
  check_format(state, file);
  using Strings = std::map<std::string, std::string>;
  return {.step = field<std::int64_t>(state, "step", file),
          .data_position = field<std::int64_t>(state, "data_position", file),
          .ir_hash = field<std::string>(state, "ir_hash", file),
          .config = field<Strings>(state, "config", file),
          .values = field<Strings>(state, "values", file)};
}

void check_digest(const fs::path& path, const json& entry, const fs::path& manifest) {
  const FileDescriptor file = open_regular_file(path);
  const std::uint64_t size = file_size(file, path), expected = field<std::uint64_t>(entry, "bytes", manifest);
  if (size != expected) invalid(path, fmt::format("has {} bytes, its manifest says {}", size, expected));
  Sha256 hash;
  std::vector<std::byte> buffer(1 << 20);
  for (std::uint64_t offset = 0; offset < size;) {
    const std::int64_t count = read_at(file.get(), buffer, offset);
    if (count <= 0) invalid(path, fmt::format("cannot be read beyond byte {}", offset));
    hash.update(std::span(buffer).first(static_cast<std::size_t>(count)));
    offset += static_cast<std::uint64_t>(count);
  }
  if (to_hex(hash.finish()) != field<std::string>(entry, "sha256", manifest))
    invalid(path, "its SHA-256 is not the one in the manifest");
}

Checkpoint load_checked(const fs::path& folder) {
  const fs::path manifest_path = folder / manifest_file;
  const json manifest = parse_strict_json(read_file(manifest_path, max_json_bytes), manifest_path.string());
  check_format(manifest, manifest_path);
  const auto files = field<json>(manifest, "files", manifest_path);
  // Only the two names known here are ever opened, whatever the manifest lists.
  for (const std::string_view name : {tensors_file, state_file}) {
    const auto entry = files.find(name);
    if (entry == files.end()) invalid(manifest_path, fmt::format("{} is missing", name));
    check_digest(folder / name, *entry, manifest_path);
  }
  return {.folder = folder,
          .meta = read_state(folder / state_file),
          .tensors = SafetensorsFile::open(folder / tensors_file),
          .warnings = {}};
}

}  // namespace

CheckpointStore::CheckpointStore(std::filesystem::path root, int keep) : root_(std::move(root)), keep_(keep) {
  if (keep < 1) throw UserError(fmt::format("{} checkpoints to keep are fewer than 1", keep), "checkpoint_keep");
}

std::filesystem::path CheckpointStore::save(const CheckpointMeta& meta, std::span<const TensorView> tensors) const {
  if (meta.step < 0) throw UserError(fmt::format("step {} is negative", meta.step), "checkpoint_metadata");
  const std::string state = state_text(meta);
  create_folder(root_);
  const FileDescriptor lock = lock_store(root_);
  remove_leftovers(root_);
  const std::vector<Numbered> present = numbered_folders(root_);
  const std::uint64_t number = present.empty() ? 1 : present.front().number + 1;
  const std::string name = fmt::format("{:08}-step-{}", number, meta.step);

  const fs::path work = root_ / (std::string(work_prefix) + name);
  create_folder(work);
  try {
    json files;
    files[tensors_file] = manifest_entry(write_safetensors(work / tensors_file, tensors));
    files[state_file] = manifest_entry(write_text(work / state_file, state));
    const json manifest{{"format", format_version}, {"files", files}};
    write_text(work / manifest_file, manifest.dump(2) + "\n");
    if (::rename(work.c_str(), (root_ / name).c_str()) != 0)
      throw UserError(fmt::format("cannot rename {}: {}", work.string(), std::generic_category().message(errno)),
                      "file_write");
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(work, ignored);
    throw;
  }
  sync_directory(root_);
  for (std::size_t i = static_cast<std::size_t>(keep_) - 1; i < present.size(); ++i) discard(present[i].folder);
  return root_ / name;
}

std::vector<std::filesystem::path> CheckpointStore::list() const {
  std::vector<fs::path> folders;
  for (Numbered& found : numbered_folders(root_)) folders.push_back(std::move(found.folder));
  return folders;
}

std::optional<Checkpoint> CheckpointStore::load_newest() const {
  // Another process may save, and so remove the oldest, between the listing and the reading: then look again.
  for (int attempt = 0;; ++attempt) {
    const std::vector<fs::path> folders = list();
    if (folders.empty()) return std::nullopt;
    std::vector<std::string> warnings;
    for (const fs::path& folder : folders) {
      try {
        Checkpoint checkpoint = load_checkpoint(folder);
        checkpoint.warnings = std::move(warnings);
        return checkpoint;
      } catch (const UserError& error) {
        warnings.push_back(error.what());
      }
    }
    if (attempt < 3 && list() != folders) continue;
    throw UserError(fmt::format("{} has {} checkpoints, and none is valid:\n  {}", root_.string(), folders.size(),
                                fmt::join(warnings, "\n  ")),
                    "checkpoint_invalid", "remove or rename the folder to start afresh");
  }
}

Checkpoint load_checkpoint(const std::filesystem::path& folder) {
  try {
    return load_checked(folder);
  } catch (const UserError& error) {
    if (error.label() == "checkpoint_invalid") throw;
    throw UserError(fmt::format("checkpoint {}: {}", folder.string(), error.what()), "checkpoint_invalid");
  }
}

}  // namespace lathe
