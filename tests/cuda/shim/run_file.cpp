#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/cuda/shim/tensor_map.h"

/// Runs launches of the kernels that this program is linked with: for every line "ENTRY FILE" that it reads, and
/// answers "done". The file consists of 8-byte words: seed, grid (3), block (3); the number of dims and the dims; the
/// number of memories and their sizes; the number of buffers and the memory of each; the number of map words and the
/// words (see ShimTensorMap), in which an address is an offset from memory number `made`; then the memories. The file
/// is written back with the status word in place of the seed.

namespace {

using Entry = int (*)(void* const* buffers, const long long* dims, const void* maps, const long long* grid,
                      const int* block, unsigned long long seed, unsigned long long* status);
struct alignas(64) Map {
  unsigned char bytes[128];
};
constexpr unsigned most_seconds = 100;

void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::_Exit(2);
}

std::vector<long long> words(std::FILE* file, std::size_t count) {
  std::vector<long long> result(count);
  expect(std::fread(result.data(), 8, count, file) == count, "the launch ends early");
  return result;
}
std::vector<long long> counted_words(std::FILE* file) {
  return words(file, static_cast<std::size_t>(words(file, 1)[0]));
}

void run(const char* name, const char* path) {
  const auto entry = reinterpret_cast<Entry>(dlsym(RTLD_DEFAULT, name));
  std::FILE* const file = std::fopen(path, "r+b");
  expect(entry && file, "no such launch");
  const std::vector<long long> head = words(file, 7), dims = counted_words(file), sizes = counted_words(file),
                               bound = counted_words(file), words_of_maps = counted_words(file);
  const long start = std::ftell(file);
  std::vector<std::vector<unsigned char>> memories;
  for (const long long size : sizes) {
    std::vector<unsigned char>& memory = memories.emplace_back(static_cast<std::size_t>(size));
    expect(std::fread(memory.data(), 1, memory.size(), file) == memory.size(), "the launch ends early");
  }
  std::vector<void*> buffers;
  for (const long long memory : bound) buffers.push_back(memories.at(static_cast<std::size_t>(memory)).data());
  std::vector<Map> maps(words_of_maps.size() * 8 / sizeof(Map));
  if (!maps.empty()) std::memcpy(maps.data(), words_of_maps.data(), maps.size() * sizeof(Map));
  for (Map& bytes : maps) {
    ShimTensorMap map;
    std::memcpy(&map, bytes.bytes, sizeof map);
    map.address += reinterpret_cast<unsigned long long>(memories.at(map.made).data());
    map.made = ShimTensorMap::is_made;
    std::memcpy(bytes.bytes, &map, sizeof map);
  }
  const int block[] = {static_cast<int>(head[4]), static_cast<int>(head[5]), static_cast<int>(head[6])};
  unsigned long long status[2] = {};  // and the word of a grid barrier
  expect(entry(buffers.data(), dims.data(), maps.data(), &head[1], block, static_cast<unsigned long long>(head[0]),
               status) == 0,
         "the launch failed");
  std::rewind(file);
  std::fwrite(status, sizeof status[0], 1, file);
  std::fseek(file, start, SEEK_SET);
  for (const auto& memory : memories) std::fwrite(memory.data(), 1, memory.size(), file);
  expect(std::fclose(file) == 0, "the results cannot be written");
}

}  // namespace

int main() {
  char name[64], path[256];
  while (std::scanf("%63s %255s", name, path) == 2) {
    alarm(most_seconds);  // threads may wait forever
    run(name, path);
    alarm(0);
    std::puts("done");
    std::fflush(stdout);
  }
  std::_Exit(0);
}
