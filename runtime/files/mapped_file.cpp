#include "runtime/files/mapped_file.h"

#include "runtime/files/file_io.h"
#include "runtime/files/mapped_pages.h"

namespace lathe {

MappedFile::~MappedFile() = default;

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const FileDescriptor file = open_regular_file(path);
  const std::uint64_t size = file_size(file, path);
  const std::shared_ptr<MappedFile> mapped(new MappedFile);
  if (size > 0) {
    mapped->pages_ = std::make_unique<MappedPages>(file, 0, size, path);
    mapped->bytes_ = {mapped->pages_->data(), size};
  }
  return mapped;
}

}  // namespace lathe
