#include "runtime/files/write/folder_save.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "ir/support/error.h"
#include "runtime/files/file_io.h"
#include "runtime/files/paths.h"
#include "runtime/files/sha256.h"
#include "runtime/files/strict_json.h"

namespace lathe {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t largest_record = std::uint64_t{16} << 20;

[[noreturn]] void bad_record(const fs::path& path) {
  throw UserError(fmt::format("{} is not a list of saved files", quote_path(path)), "model_folder",
                  "remove it; later saves then remove none of the files that are in the folder now");
}

bool contains(const FolderSave::Names& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/// Returns whether a name stays within the folder.
bool is_inside(const std::string& name) {
  const fs::path path(name);
  return !name.empty() && path.is_relative() && name.find('\0') == std::string::npos &&
         std::ranges::none_of(path, [](const fs::path& part) { return part == ".." || part == "."; });
}

/// Returns whether readers open this file first and find other files through it.
bool is_read_first(const std::string& name) {
  const std::string file = fs::path(name).filename().string();
  return file == "config.json" || file == "adapter_config.json" || file == "modules.json" ||
         file.ends_with(".index.json");
}

/// Returns the SHA-256 of a file in hexadecimal.
std::string digest_of(const fs::path& path) {
  const FileDescriptor file = open_regular_file(path);
  Sha256 hash;
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  for (std::uint64_t offset = 0;;) {
    const std::int64_t count = read_at(file.get(), buffer, offset);
    if (count <= 0) return to_hex(hash.finish());
    hash.update(std::span(buffer).first(static_cast<std::size_t>(count)));
    offset += static_cast<std::uint64_t>(count);
  }
}

/// Returns whether the file is replaced by a rename. Links and files written in place are not.
bool is_replaced(const fs::path& path, const AtomicFile& file) {
  std::error_code code;
  return file.has_neighbour() && fs::symlink_status(path, code).type() == fs::file_type::regular;
}

/// Locks the folder until the descriptor is closed. File systems without such locks are not locked.
FileDescriptor lock_folder(const fs::path& folder) {
  FileDescriptor file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.is_open() && ::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw UserError(fmt::format("another process saves into {}", quote_path(folder)), "file_lock",
                    "wait until it is done, or give another folder");
  return file;
}

}  // namespace

FolderSave::FolderSave(fs::path folder) : folder_(std::move(folder)) {
  make_folders(folder_);
  lock_ = lock_folder(folder_);
  before_ = read_record(folder_);
  AtomicFile::remove_leftovers_in(folder_);
}

FolderSave::Record FolderSave::read_record(const fs::path& folder) {
  const fs::path path = folder / record_name;
  Record record;
  if (!path_exists(path)) return record;
  const nlohmann::json json = parse_strict_json(read_file(path, largest_record), path.string());
  try {
    record.complete = json.at("complete").get<bool>();
    for (const auto& file : json.at("files")) {
      record.files.push_back({.name = file.at("name").get<std::string>(),
                              .bytes = file.at("bytes").get<std::uint64_t>(),
                              .sha256 = file.at("sha256").get<std::string>()});
      if (!is_inside(record.files.back().name)) bad_record(path);
    }
  } catch (const nlohmann::json::exception&) {
    bad_record(path);
  }
  return record;
}

void FolderSave::write_record(const Record& record) const {
  nlohmann::ordered_json json{{"complete", record.complete}, {"files", nlohmann::json::array()}};
  for (const Entry& entry : record.files)
    json["files"].push_back({{"name", entry.name}, {"bytes", entry.bytes}, {"sha256", entry.sha256}});
  AtomicFile file(folder_ / record_name);
  file.write(json.dump(2) + "\n");
  file.commit();
}

AtomicFile& FolderSave::file(const std::string& name) {
  const fs::path path = folder_ / name;
  make_folders(path.parent_path());
  // A file that cannot be renamed is overwritten in place, so mark the folder as incomplete from then on.
  auto made =
      std::make_unique<AtomicFile>(path, [this] { write_record({.complete = false, .files = before_.files}); });
  return *(files_[name] = std::move(made));
}

FolderSave::Names FolderSave::names() const {
  Names all;
  for (const auto& [name, file] : files_) all.push_back(name);
  return all;
}

bool FolderSave::is_unchanged(const fs::path& folder, const Entry& entry) {
  const fs::path path = folder / entry.name;
  std::error_code code;
  return fs::symlink_status(path, code).type() == fs::file_type::regular &&
         fs::file_size(path, code) == entry.bytes && !code && digest_of(path) == entry.sha256;
}

FolderSave::Names FolderSave::files_to_remove(const fs::path& folder, const Record& record, const Names& read,
                                              const Names& written) {
  Names removed;
  for (const Entry& entry : record.files)
    if (!contains(written, entry.name) && !contains(removed, entry.name) && is_unchanged(folder, entry))
      removed.push_back(entry.name);
  for (const std::string& name : read)
    if (!contains(written, name) && !contains(removed, name) && path_exists(folder / name))
      throw UserError(
          fmt::format("{} has the file {}, which would be read together with the new files", quote_path(folder),
                      quote(name)),
          "output_folder",
          "no earlier save of Lathe wrote this file, so it is not replaced: remove it, or give another folder");
  return removed;
}

void FolderSave::check(const fs::path& folder, const Names& read, const Names& written) {
  if (is_folder(folder)) files_to_remove(folder, read_record(folder), read, written);
}

void FolderSave::remove(const std::string& name) const {
  const fs::path path = folder_ / name;
  std::error_code failed;
  fs::remove(path, failed);
  if (failed)
    throw UserError(fmt::format("cannot remove {}: {}", path.string(), failed.message()), "file_write",
                    "save into another folder: the files of this one may be of two models");
  sync_directory(path.parent_path());
}

void FolderSave::replace_files(const Names& removed) {
  for (const auto& [name, file] : files_)
    if (is_read_first(name) && is_replaced(folder_ / name, *file)) remove(name);
  for (const auto& [name, file] : files_)
    if (!is_read_first(name)) file->publish();
  for (const std::string& name : removed) remove(name);
  for (const auto& [name, file] : files_)
    if (is_read_first(name)) file->publish();
}

void FolderSave::commit(const Names& read) {
  const Names removed = files_to_remove(folder_, before_, read, names());
  Record after;
  for (const auto& [name, file] : files_) {
    const WrittenFile written = file->prepare();
    after.files.push_back({.name = name, .bytes = written.size, .sha256 = to_hex(written.sha256)});
  }
  Record during{.complete = false, .files = before_.files};
  during.files.insert(during.files.end(), after.files.begin(), after.files.end());
  write_record(during);
  replace_files(removed);
  write_record(after);
  before_ = std::move(after);
  files_.clear();
}

void FolderSave::require_complete(const fs::path& folder) {
  if (read_record(folder).complete) return;
  throw UserError(fmt::format("{}: a save into this folder was interrupted, so that files of two models may be mixed",
                              quote_path(folder)),
                  "model_folder", fmt::format("repeat the save; or restore its files and remove {}", record_name));
}

}  // namespace lathe
