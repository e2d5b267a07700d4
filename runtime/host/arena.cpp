#include "runtime/host/arena.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <cerrno>
#include <fstream>
#include <limits>
#include <string>
#include <system_error>

#include "ir/hardware/memory_units.h"
#include "ir/support/error.h"

namespace lathe {

namespace {

constexpr std::size_t page = page_bytes, huge_page = huge_page_bytes;

std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

[[noreturn]] void fail(std::size_t bytes, int code) {
  const MemoryInfo memory = memory_info();
  throw UserError(
      fmt::format("cannot reserve {} bytes of memory ({:.2f} GiB): {}", bytes, static_cast<double>(bytes) * 0x1p-30,
                  std::generic_category().message(code)),
      "arena_memory",
      fmt::format("this machine has {:.2f} GiB, {:.2f} GiB of it available; a smaller batch or sequence "
                  "needs less",
                  static_cast<double>(memory.total) * 0x1p-30, static_cast<double>(memory.available) * 0x1p-30));
}

}  // namespace

Arena::Arena(std::size_t bytes) {
  if (bytes == 0) return;
  const std::size_t unit = bytes >= huge_page ? huge_page : page;
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) fail(bytes, ENOMEM);
  const std::size_t rounded = round_up(bytes, unit);
  const std::size_t wanted = unit == huge_page ? rounded + huge_page : rounded;
  void* const address = ::mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) fail(bytes, errno);
  mapping_ = address, mapped_ = wanted, size_ = bytes;
  const auto start = reinterpret_cast<std::uintptr_t>(address);
  data_ = static_cast<std::byte*>(address) + (round_up(start, unit) - start);
  // Only a hint: without huge pages the memory works, but accesses are slower.
  if (unit == huge_page) (void)::madvise(data_, rounded, MADV_HUGEPAGE);
}

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Arena::~Arena() {
  if (mapping_) ::munmap(mapping_, mapped_);
}

MemoryInfo memory_info() {
  MemoryInfo info;
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    const auto kibibytes = [&](std::string_view key) -> std::int64_t {
      return line.starts_with(key) ? std::strtoll(line.c_str() + key.size(), nullptr, 10) : 0;
    };
    if (const auto total = kibibytes("MemTotal:")) info.total = total << 10;
    if (const auto available = kibibytes("MemAvailable:")) info.available = available << 10;
  }
  return info;
}

}  // namespace lathe
