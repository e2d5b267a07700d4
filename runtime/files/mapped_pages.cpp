#include "runtime/files/mapped_pages.h"

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "ir/support/error.h"

namespace lathe {

namespace {

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

MappedPages::MappedPages(const FileDescriptor& file, std::uint64_t begin, std::uint64_t end,
                         const std::filesystem::path& path) {
  const std::uint64_t start = begin / page_bytes() * page_bytes();
  size_ = end - start;
  address_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file.get(),
                    static_cast<off_t>(start));
  if (address_ == MAP_FAILED)
    throw UserError(fmt::format("{}: cannot map {} bytes", path.string(), size_), "safetensors_read");
  data_ = static_cast<std::byte*>(address_) + (begin - start);
}

MappedPages::~MappedPages() { ::munmap(address_, size_); }

void move_out_of_pages(std::span<std::byte> from, std::byte* to) {
  constexpr std::size_t piece = std::size_t{1} << 24;
  const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(from.data()), page = page_bytes();
  std::size_t given_back =
      (page - first % page) % page;  // bytes of `from` already returned; the rest starts on a page
  for (std::size_t done = 0; done < from.size();) {
    const std::size_t bytes = std::min(piece, from.size() - done);
    std::memcpy(to + done, from.data() + done, bytes);
    done += bytes;
    if (done < given_back + page) continue;
    const std::size_t whole = (done - given_back) / page * page;
    ::madvise(from.data() + given_back, whole, MADV_DONTNEED);
    given_back += whole;
  }
}

}  // namespace lathe
