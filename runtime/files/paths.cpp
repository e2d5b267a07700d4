#include "runtime/files/paths.h"

#include <fmt/core.h>

#include <algorithm>
#include <system_error>

#include "ir/support/error.h"
#include "ir/support/visible.h"
#include "runtime/files/file_io.h"

namespace lathe {

namespace fs = std::filesystem;

namespace {

fs::file_type type_of(const fs::path& path) {
  std::error_code code;
  const fs::file_type type = fs::status(path, code).type();
  if (type == fs::file_type::none)
    throw UserError(fmt::format("cannot look at {}: {}", quote_path(path), code.message()), "file_open",
                    "give a path that can be read");
  return type;
}

}  // namespace

bool path_exists(const fs::path& path) { return type_of(path) != fs::file_type::not_found; }
bool is_folder(const fs::path& path) { return type_of(path) == fs::file_type::directory; }
bool is_plain_file(const fs::path& path) { return type_of(path) == fs::file_type::regular; }

std::string quote_path(const fs::path& path) {
  constexpr std::size_t longest = 1000;
  const std::string text = path.string();
  return text.size() > longest ? quote(text) : "'" + visible(text) + "'";
}

std::vector<fs::path> list_folder(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code code;
  for (fs::directory_iterator entry(folder, code), end; !code && entry != end; entry.increment(code))
    entries.push_back(entry->path());
  if (code)
    throw UserError(fmt::format("cannot list {}: {}", quote_path(folder), code.message()), "file_open",
                    "give a folder that can be read");
  std::ranges::sort(entries);
  return entries;
}

fs::path absolute_path(const fs::path& path) {
  std::error_code code;
  fs::path absolute = fs::absolute(path, code);
  if (code)
    throw UserError(
        fmt::format("cannot find the current folder, which {} is relative to: {}", quote_path(path), code.message()),
        "file_open", "change to a folder that exists, or give an absolute path");
  return absolute;
}

void make_folders(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    throw UserError(fmt::format("cannot create {}: {}", quote_path(folder), failed.message()), "file_write",
                    "give another folder");
}

}  // namespace lathe
