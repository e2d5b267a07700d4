#include "runtime/files/checkpoint.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "ir/support/error.h"
#include "runtime/files/file_lock.h"
#include "runtime/files/finite.h"
#include "runtime/files/strict_json.h"
#include "runtime/files/write/atomic_file.h"

namespace lathe {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view tensors_file = "tensors.safetensors", state_file = "state.json",
                           manifest_file = "manifest.json", work_prefix = ".work-", lock_file = ".lock";
constexpr std::uint64_t max_json_bytes = 64 << 20;
constexpr int format_version = 1;

constexpr std::uint64_t largest_number = 999'999'999'999;
constexpr std::chrono::seconds timeout(30);

struct Numbered {
  std::uint64_t number = 0;
  fs::path folder;
};

/// Returns the number of a folder called "<number>-step-<step>". Larger numbers are clamped to `largest_number`.
std::optional<std::uint64_t> folder_number(std::string_view name) {
  std::uint64_t number = 0, step = 0;
  const char *const begin = name.data(), *const end = begin + name.size();
  const auto first = std::from_chars(begin, end, number);
  constexpr std::string_view middle = "-step-";
  if (first.ptr == begin || !std::string_view(first.ptr, end).starts_with(middle)) return std::nullopt;
  const auto second = std::from_chars(first.ptr + middle.size(), end, step);
  if (second.ec != std::errc() || second.ptr != end) return std::nullopt;
  return first.ec == std::errc() ? std::min(number, largest_number) : largest_number;
}

[[noreturn]] void no_number_after(const fs::path& folder) {
  throw UserError(fmt::format("{} has the largest number of a checkpoint: none could come after it", folder.string()),
                  "checkpoint_number", "give it another name, or move it elsewhere");
}

/// Returns the numbered folders, newest first.
std::vector<Numbered> numbered_folders(const fs::path& root) {
  std::vector<Numbered> found;
  std::error_code code;
  for (fs::directory_iterator item(root, code), end; !code && item != end; item.increment(code))
    if (const auto number = folder_number(item->path().filename().string())) found.push_back({*number, item->path()});
  if (code && code != std::errc::no_such_file_or_directory)
    throw UserError(fmt::format("cannot list {}: {}", root.string(), code.message()), "file_open");
  std::ranges::sort(found, std::greater(), &Numbered::number);
  if (!found.empty() && found.front().number == largest_number) no_number_after(found.front().folder);
  return found;
}

/// Creates the missing folders of a path durably.
void create_folder(const fs::path& path) {
  std::error_code code;
  if (path.empty() || fs::is_directory(path, code)) return;
  create_folder(path.parent_path());
  fs::create_directory(path, code);
  if (code) throw UserError(fmt::format("cannot create {}: {}", path.string(), code.message()), "file_write");
  sync_directory(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

/// Returns whether a store created the folder and it contains only the store's files.
bool holds_own_files_only(const fs::path& folder) {
  std::error_code code;
  if (fs::symlink_status(folder, code).type() != fs::file_type::directory) return false;
  for (fs::directory_iterator item(folder, code), end; !code && item != end; item.increment(code)) {
    const std::string name = item->path().filename().string();
    const bool known =
        name == tensors_file || name == state_file || name == manifest_file || AtomicFile::is_temporary_name(name);
    if (!known || fs::symlink_status(item->path(), code).type() != fs::file_type::regular) return false;
  }
  return !code;
}

/// Removes a checkpoint. Renames it first, so that a kill leaves no folder that looks like a checkpoint. Ignores
/// failures.
void discard(const fs::path& folder) {
  if (!holds_own_files_only(folder)) return;
  const fs::path hidden = folder.parent_path() / (std::string(work_prefix) + folder.filename().string());
  std::error_code code;
  if (holds_own_files_only(hidden)) fs::remove_all(hidden, code);
  fs::rename(folder, hidden, code);
  if (!code) fs::remove_all(hidden, code);
}

/// Removes leftovers of killed processes. The store must be locked, so that no other process is writing.
void remove_half_made(const fs::path& root) {
  std::vector<fs::path> leftovers;
  std::error_code ignored;
  for (fs::directory_iterator item(root, ignored), end; !ignored && item != end; item.increment(ignored)) {
    const std::string name = item->path().filename().string();
    if (name.starts_with(work_prefix) && folder_number(std::string_view(name).substr(work_prefix.size())))
      leftovers.push_back(item->path());
  }
  for (const fs::path& path : leftovers)
    if (holds_own_files_only(path)) fs::remove_all(path, ignored);
}

std::string state_text(const CheckpointMeta& meta, std::span<const TensorView> records) {
  json names = json::array();
  for (const TensorView& record : records) names.push_back(record.name);
  const json state{{"format", format_version}, {"step", meta.step},     {"data_position", meta.data_position},
                   {"ir_hash", meta.ir_hash},  {"config", meta.config}, {"values", meta.values},
                   {"records", names}};
  try {
    return state.dump(2) + "\n";
  } catch (const json::exception&) {
    throw UserError("the checkpoint's metadata is not UTF-8", "checkpoint_metadata");
  }
}

json manifest_entry(const WrittenFile& written) {
  return {{"bytes", written.size}, {"sha256", to_hex(written.sha256)}};
}

WrittenFile write_text(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  return file.commit();
}

[[noreturn]] void invalid(const fs::path& path, std::string_view why) {
  throw UserError(fmt::format("{}: {}", path.string(), why), "checkpoint_invalid");
}

/// Returns a field of an object in `file` as type T.
template <class T>
T field(const json& object, const char* name, const fs::path& file) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || found == object.end()) invalid(file, fmt::format("'{}' is missing", name));
  const bool fits = std::is_integral_v<T>            ? found->is_number_integer()
                    : std::is_same_v<T, std::string> ? found->is_string()
                                                     : found->is_structured();
  if (!fits) invalid(file, fmt::format("'{}' has the wrong type", name));
  try {
    return found->get<T>();
  } catch (const json::exception&) {
    invalid(file, fmt::format("'{}' has the wrong type", name));
  }
}

/// Returns a nonnegative integer field.
std::int64_t count_field(const json& object, const char* name, const fs::path& file) {
  const auto value = field<std::int64_t>(object, name, file);
  const bool wraps = object.at(name).is_number_unsigned() && value < 0;
  if (wraps) invalid(file, fmt::format("'{}' is {}, which is too large", name, object.at(name).dump()));
  if (value < 0) invalid(file, fmt::format("'{}' is {}, which is negative", name, value));
  return value;
}

void check_format(const json& object, const fs::path& file) {
  const auto version = field<std::int64_t>(object, "format", file);
  if (version != format_version)
    invalid(file, fmt::format("format {} is not the {} that this program knows", version, format_version));
}

struct State {
  CheckpointMeta meta;
  std::vector<std::string> records;
};

State read_state(const fs::path& file) {
  const json state = parse_strict_json(read_file(file, max_json_bytes), file.string());
  check_format(state, file);
  using Strings = std::map<std::string, std::string>;
  State result{.meta = {.step = count_field(state, "step", file),
                        .data_position = count_field(state, "data_position", file),
                        .ir_hash = field<std::string>(state, "ir_hash", file),
                        .config = field<Strings>(state, "config", file),
                        .values = field<Strings>(state, "values", file)},
               .records = {}};
  if (state.contains("records")) result.records = field<std::vector<std::string>>(state, "records", file);
  return result;
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
  // Only these two files are opened, regardless of the names in the manifest.
  for (const std::string_view name : {tensors_file, state_file}) {
    const auto entry = files.find(name);
    if (entry == files.end()) invalid(manifest_path, fmt::format("{} is missing", name));
    check_digest(folder / name, *entry, manifest_path);
  }
  State state = read_state(folder / state_file);
  return {.folder = folder,
          .meta = std::move(state.meta),
          .tensors = SafetensorsFile::open(folder / tensors_file),
          .records = std::move(state.records),
          .warnings = {}};
}

void check_finite(std::span<const TensorView> states, std::string_view where) {
  if (const auto found = find_not_finite(states))
    throw UserError(fmt::format("{}{}{}", where, where.empty() ? "" : ": ", found->to_string()),
                    "checkpoint_not_finite");
}

}  // namespace

CheckpointStore::CheckpointStore(std::filesystem::path root, int keep, States states)
    : root_(std::move(root)), keep_(keep), states_(states) {
  if (keep < 1) throw UserError(fmt::format("{} checkpoints to keep are fewer than 1", keep), "checkpoint_keep");
}

std::filesystem::path CheckpointStore::save(const CheckpointMeta& meta, std::span<const TensorView> states,
                                            std::span<const TensorView> records) const {
  if (meta.step < 0 || meta.data_position < 0)
    throw UserError(fmt::format("step {} or data position {} is negative", meta.step, meta.data_position),
                    "checkpoint_metadata");
  if (states_ == States::finite) check_finite(states, {});
  const std::string state = state_text(meta, records);
  std::vector<TensorView> tensors(states.begin(), states.end());
  tensors.insert(tensors.end(), records.begin(), records.end());
  create_folder(root_);
  const auto lock = FileLock::take(root_ / lock_file, timeout);
  if (!lock)
    throw UserError(fmt::format("{}: {} has been saving there for {} s", root_.string(),
                                FileLock::holder(root_ / lock_file), timeout.count()),
                    "checkpoint_locked");
  remove_half_made(root_);
  const std::vector<Numbered> present = numbered_folders(root_);
  const std::uint64_t number = present.empty() ? 1 : present.front().number + 1;
  if (number == largest_number) no_number_after(present.front().folder);
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

void CheckpointStore::remove_leftovers() const {
  std::error_code code;
  if (!fs::is_directory(root_, code)) return;
  if (FileLock::take(root_ / lock_file)) remove_half_made(root_);
}

std::vector<std::filesystem::path> CheckpointStore::list() const {
  std::vector<fs::path> folders;
  for (Numbered& found : numbered_folders(root_)) folders.push_back(std::move(found.folder));
  return folders;
}

std::optional<Checkpoint> CheckpointStore::load_newest() const {
  // Retry, because another process may save and remove the oldest checkpoint between listing and reading.
  for (int attempt = 0;; ++attempt) {
    const std::vector<fs::path> folders = list();
    if (folders.empty()) return std::nullopt;
    std::vector<std::string> warnings;
    for (const fs::path& folder : folders) {
      try {
        Checkpoint checkpoint = load_checkpoint(folder);
        check(checkpoint);
        checkpoint.warnings = std::move(warnings);
        return checkpoint;
      } catch (const UserError& error) {
        warnings.push_back(error.what());
      }
    }
    if (attempt < 3 && list() != folders) continue;
    throw UserError(fmt::format("{} has {} checkpoints, and none is valid", root_.string(), folders.size()),
                    "checkpoint_invalid",
                    fmt::format("{}\n  remove or rename the folder to start afresh", fmt::join(warnings, "\n  ")));
  }
}

void CheckpointStore::check(const Checkpoint& checkpoint) const {
  if (states_ == States::any) return;
  for (const std::string& name : checkpoint.tensors.names()) {
    if (std::ranges::find(checkpoint.records, name) != checkpoint.records.end()) continue;
    const HostTensor tensor = checkpoint.tensors.tensor(name);
    check_finite(std::vector{view_of(name, tensor)}, "checkpoint " + checkpoint.folder.string());
  }
}

Checkpoint load_checkpoint(const std::filesystem::path& folder) {
  try {
    return load_checked(folder);
  } catch (const UserError& error) {
    if (error.label() == "checkpoint_invalid") throw;
    throw UserError(fmt::format("checkpoint {} cannot be read", folder.string()), "checkpoint_invalid", error.what());
  }
}

}  // namespace lathe
