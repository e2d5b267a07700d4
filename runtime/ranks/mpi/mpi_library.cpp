#include "runtime/ranks/mpi/mpi_library.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "ir/support/error.h"
#include "runtime/files/paths.h"

namespace lathe {

namespace {

namespace fs = std::filesystem;

constexpr const char* plugin_name = "liblathe_mpi.so";

/// Returns the folder of the library or program that contains this code.
fs::path own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code ignored;
  return fs::canonical(info.dli_fname, ignored).parent_path();
}

fs::path program_folder() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

std::vector<fs::path> candidates(const fs::path& file) {
  if (!file.empty()) return {absolute_path(file)};
  std::vector<fs::path> found;
  const auto add = [&](const fs::path& candidate) {
    if (std::ranges::find(found, candidate) == found.end()) found.push_back(candidate);
  };
  for (const fs::path& folder : {own_folder(), program_folder()}) {
    if (folder.empty()) continue;
    add(folder / plugin_name);
    add((folder / ".." / LATHE_LIBRARY_FOLDER / plugin_name).lexically_normal());
  }
  add(plugin_name);
  return found;
}

[[noreturn]] void missing(const std::vector<fs::path>& sought, const std::vector<std::string>& faults) {
  std::vector<std::string> places;
  for (const fs::path& place : sought) places.push_back(place.string());
  std::string message = fmt::format("the MPI plugin is not found: searched {}", fmt::join(places, ", "));
  for (const std::string& fault : faults) message += "; " + fault;
  throw UserError(message, "mpi_plugin",
                  "install an MPI (Debian: libopenmpi-dev openmpi-bin), build Lathe again, which then builds "
                  "liblathe_mpi.so, and keep that file next to the program or liblathe.so");
}

template <class Function>
void find(void* library, const fs::path& file, const char* name, Function& function) {
  void* const symbol = dlsym(library, name);
  if (symbol == nullptr)
    throw UserError(fmt::format("{} has no {}", file.string(), name), "mpi_plugin",
                    "give the liblathe_mpi.so that was built with this Lathe");
  function = reinterpret_cast<Function>(symbol);
}

MpiLibrary functions_of(void* library, const fs::path& file) {
  MpiLibrary mpi;
  find(library, file, "lathe_mpi_abi", mpi.abi);
  if (const int number = mpi.abi(); number != lathe_mpi_abi_number)
    throw UserError(fmt::format("{} is of another Lathe: its interface has number {}, this Lathe's {}", file.string(),
                                number, static_cast<int>(lathe_mpi_abi_number)),
                    "mpi_plugin", "give the liblathe_mpi.so that was built with this Lathe");
  find(library, file, "lathe_mpi_library", mpi.library);
  find(library, file, "lathe_mpi_error_text", mpi.error_text);
  find(library, file, "lathe_mpi_can_begin", mpi.can_begin);
  find(library, file, "lathe_mpi_begin", mpi.begin);
  find(library, file, "lathe_mpi_end", mpi.end);
  find(library, file, "lathe_mpi_start", mpi.start);
  find(library, file, "lathe_mpi_progress", mpi.progress);
  find(library, file, "lathe_mpi_is_done", mpi.is_done);
  find(library, file, "lathe_mpi_drop", mpi.drop);
  find(library, file, "lathe_mpi_abort", mpi.abort);
  return mpi;
}

}  // namespace

std::string MpiLibrary::name() const {
  std::string text = library();
  std::ranges::replace(text, '\t', ' ');  // in MPICH's text
  return text.substr(0, text.find_first_of(",\n"));
}

void MpiLibrary::check(int status, const std::string& what) const {
  if (status == 0) return;
  std::array<char, 1024> text{};
  error_text(status, text.data(), static_cast<int>(text.size()));
  throw UserError(fmt::format("{} ({}): {}", what, name(), text.data()), "mpi_failed", "");
}

MpiLibrary load_mpi_library(const fs::path& file) {
  const std::vector<fs::path> sought = candidates(file);
  std::vector<std::string> faults;
  for (const fs::path& candidate : sought) {
    if (void* const library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))
      return functions_of(library, candidate);
    const char* const why = dlerror();
    // A file that exists but cannot be loaded, for example because its MPI is missing, is reported separately.
    if (std::error_code ignored; why != nullptr && fs::exists(candidate, ignored)) faults.emplace_back(why);
  }
  missing(sought, faults);
}

}  // namespace lathe
