#include "runtime/write_library.h"

#include "runtime/files/paths.h"
#include "runtime/files/write/atomic_file.h"

namespace lathe {

std::filesystem::path write_library_file(const std::filesystem::path& folder, const LibraryFile& file) {
  const std::filesystem::path path = folder / file.name;
  AtomicFile written(path);
  written.write(file.bytes);
  written.commit();
  return path;
}

void write_library(const std::filesystem::path& folder, const EmittedLibrary& library) {
  make_folders(folder);
  write_library_file(folder, library.archive);
  write_library_file(folder, library.header);
}

}  // namespace lathe
