#include <fmt/core.h>

#include "runtime/cache/disk_cache.h"
#include "runtime/files/sha256.h"
#include "tests/robustness/support/batch.h"
#include "tests/robustness/support/folder.h"
#include "tests/robustness/support/mutate.h"

namespace lathe::robustness {

namespace {

namespace fs = std::filesystem;

const std::string key = "a kernel", code(700, 'c');

std::string good_entry(const fs::path& folder) {
  DiskCache cache(folder);
  cache.put(key, code);
  return read_bytes(cache.folder() / sha256_hex(key));
}

std::string make(const std::string& good, std::uint64_t seed) {
  Mutator mutator(seed);
  std::string mutant = mutator.bytes(good);
  return mutant == good ? good + "x" : mutant;
}

/// Checks that a modified entry is never found, and that no other file in the folder changes.
Answer check(const fs::path& folder, std::uint64_t seed, const std::string& mutant) {
  DiskCache cache(folder, 4096);
  const fs::path entry = cache.folder() / sha256_hex(key), other = cache.folder() / "other";
  write_bytes(entry, mutant);
  fs::permissions(entry, fs::perms::owner_read | fs::perms::owner_write);
  write_bytes(other, std::string(9000, 'o'));
  if (const auto found = cache.get(key)) throw Wrong("the cache returned a corrupted entry");
  if (cache.get("another kernel")) throw Wrong("the cache returned an entry that was never stored");
  cache.put(key, code);
  if (cache.get(key) != code) throw Wrong("a stored entry is not found");
  for (std::uint64_t i = 0; i < seed % 10; ++i) cache.put(std::to_string(i), code);
  if (fs::file_size(other) != 9000) throw Wrong("an unrelated file has changed");
  return Answer::refused;
}

}  // namespace

void attack_cache(Report& report) {
  const Folder folder;
  const std::string good = good_entry(folder / "c");
  try_mutants(
      report, 2000,
      {.make = [&](std::uint64_t seed) { return make(good, seed); },
       .check = [&](std::uint64_t seed, const std::string& mutant) { return check(folder / "c", seed, mutant); },
       .ending = ".entry"});
}

}  // namespace lathe::robustness
