#include "ir/kernel/interpret/interpreter_memory.h"

#include <algorithm>

#include <fmt/core.h>

#include "ir/kernel/intrinsics/run.h"

namespace lathe::kernel {

Scratch::Scratch(const BufferInfo& info)
    : bytes(size_in_bytes(info.dtype) * static_cast<std::size_t>(info.count)),
      written(static_cast<std::size_t>(info.count)) {
  if (info.space == Space::shared) uses.resize(static_cast<std::size_t>(info.count));
}

void Scratch::clear() {
  std::fill(written.begin(), written.end(), Written::never);
  std::fill(uses.begin(), uses.end(), SharedUse{});
}

void Target::fail(const std::string& text, const char* label) const {
  throw InternalError(fmt::format("kernel {}: {}  [{}]", kernel->name, text, label));
}

void Target::check_address(int alignment, std::int64_t index) const {
  const auto address = (scratch ? 0 : reinterpret_cast<std::uintptr_t>(data)) +
                       static_cast<std::uintptr_t>(index) * static_cast<std::uintptr_t>(element_bytes);
  if (address % static_cast<std::uintptr_t>(alignment) != 0)
    fail(fmt::format("{}[{}] is not aligned to {} bytes", info->name, index, alignment), "alignment");
}

std::vector<Scalar> Target::load_chunk(std::int64_t index, std::int64_t all, std::int64_t given,
                                       const Actor& actor) const {
  std::vector<Scalar> values;
  values.reserve(static_cast<std::size_t>(all));
  for (std::int64_t i = 0; i < all; ++i) values.push_back(i < given ? load(index + i, actor) : Scalar{});
  return values;
}

bool Target::region_notes_read(std::int64_t index, const Actor& actor) const {
  for (RunningRegion* region : actor.regions)
    if (region->note_read(*this, index, actor)) return true;
  return false;
}

bool Target::region_notes_write(std::int64_t index, const Actor& actor) const {
  for (RunningRegion* region : actor.regions)
    if (region->note_write(*this, index, actor)) return true;
  return false;
}

void Target::begin_copy(std::int64_t index, const Actor& actor) const {
  element(index, "copy to");
  Written& written = scratch->written[static_cast<std::size_t>(index)];
  if (written == Written::by_copy_under_way)
    fail(fmt::format("a copy to {}[{}], where another one is under way", info->name, index), "race");
  written = Written::by_copy_under_way;
  note_write(index, actor);
}

void Target::end_copy(std::int64_t index, Scalar value, const Actor& actor) const {
  scratch->written[static_cast<std::size_t>(index)] = Written::yes;
  note_write(index, actor);
  write_element(info->dtype, element(index, "copy to"), value);
}

void Target::fail_bounds(std::int64_t index, const char* verb) const {
  fail(fmt::format("{} {}[{}], which has {} elements", verb, info->name, index, count), "out_of_bounds");
}

void Target::fail_unwritten(std::int64_t index) const {
  const bool never = scratch->written[static_cast<std::size_t>(index)] == Written::never;
  fail(fmt::format("load of {}[{}], {}", info->name, index,
                   never ? "which was never written" : "whose copy was not waited for"),
       "uninitialised");
}

void Target::fail_under_copy(std::int64_t index) const {
  fail(fmt::format("a store to {}[{}], where a copy is under way", info->name, index), "race");
}

void Target::fail_read_race(std::int64_t index, const Actor& actor) const {
  fail(fmt::format("thread {} reads {}[{}], which thread {} wrote with no barrier between", actor.thread, info->name,
                   index, scratch->uses[static_cast<std::size_t>(index)].writer),
       "race");
}

void Target::fail_write_race(std::int64_t index, const Actor& actor, bool wrote) const {
  const SharedUse& use = scratch->uses[static_cast<std::size_t>(index)];
  fail(fmt::format("thread {} writes {}[{}], which thread {} {} with no barrier between", actor.thread, info->name,
                   index, wrote ? use.writer : use.reader, wrote ? "wrote" : "read"),
       "race");
}

}  // namespace lathe::kernel
