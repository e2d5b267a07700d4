#include "runtime/cpu/kept_copies.h"

#include <algorithm>

#include "passes/memory/memory_plan.h"
#include "passes/program/kept_launches.h"

namespace lathe {

KeptCopies::KeptCopies(const Program& program) {
  const auto launches = static_cast<std::size_t>(kept_launches(program));
  for (std::size_t l = 0; l < launches; ++l) {
    const Launch& launch = program.launches[l];
    Copy& copy = copies_.emplace_back();
    for (const int b : launch.buffers) {
      const ProgramBuffer& buffer = program.buffers[b];
      if (buffer.kind == ProgramBuffer::Kind::kept) {
        copy.buffer = b;
        copy.bytes = buffer_bytes(buffer, {});
        continue;
      }
      const auto slot = std::ranges::find(program.states, b, &Program::Slot::buffer);
      if (slot != program.states.end())
        copy.sources.push_back({static_cast<std::size_t>(slot - program.states.begin())});
    }
    copy.block = block_of(launch.condition);
    Block& block = blocks_[copy.block];
    copy.offset = block.bytes;
    block.bytes += copy.bytes;
  }
}

std::size_t KeptCopies::block_of(const std::optional<SizeCondition>& condition) {
  const auto found = std::ranges::find(blocks_, condition, &Block::condition);
  if (found != blocks_.end()) return static_cast<std::size_t>(found - blocks_.begin());
  blocks_.push_back({condition});
  return blocks_.size() - 1;
}

void KeptCopies::allocate(int launch) {
  Block& block = blocks_[copies_[launch].block];
  if (!block.memory.data()) block.memory = Arena(static_cast<std::size_t>(block.bytes));
}

std::span<std::byte> KeptCopies::memory(int launch) const {
  const Copy& copy = copies_[launch];
  const Arena& memory = blocks_[copy.block].memory;
  if (!memory.data()) return {};
  return memory.bytes().subspan(static_cast<std::size_t>(copy.offset), static_cast<std::size_t>(copy.bytes));
}

bool KeptCopies::is_current(int launch, std::span<StoredTensor* const> states) const {
  const Copy& copy = copies_[launch];
  if (!copy.is_packed || copy.shared_count != writes_of_shared_memory()) return false;
  return std::ranges::all_of(copy.sources, [&](const Source& source) {
    const WriteCount& writes = states[source.state]->writes;
    return writes && writes == source.writes && *writes == source.count;
  });
}

void KeptCopies::note(int launch, std::span<StoredTensor* const> states) {
  Copy& copy = copies_[launch];
  for (Source& source : copy.sources) {
    source.writes = states[source.state]->writes;
    source.count = source.writes ? source.writes->load() : 0;
  }
  copy.shared_count = writes_of_shared_memory();
  copy.is_packed = true;
}

}  // namespace lathe
