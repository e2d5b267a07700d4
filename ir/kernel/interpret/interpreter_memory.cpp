#include "ir/kernel/interpret/interpreter_memory.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "ir/kernel/intrinsics/run.h"
#include "ir/support/error.h"

namespace lathe::kernel {

namespace {

template <class T>
T read_as(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void write_as(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

}  // namespace

Scalar read_element(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::f64: return {.real = read_as<double>(at)};
    case DType::f32: return {.real = read_as<float>(at)};
    case DType::bf16: return {.real = bf16_value(read_as<std::uint16_t>(at))};
    case DType::f16: return {.real = f16_value(read_as<std::uint16_t>(at))};
    case DType::i64: return {.integer = read_as<std::int64_t>(at)};
    case DType::i32: return {.integer = read_as<std::int32_t>(at)};
    case DType::i8: return {.integer = read_as<std::int8_t>(at)};
    case DType::u8: return {.integer = read_as<std::uint8_t>(at)};
    case DType::boolean: return {.integer = read_as<std::uint8_t>(at) != 0};
    case DType::c64:
    case DType::c128: break;
  }
  throw InternalError("a complex element in a kernel");
}

void write_element(DType dtype, std::byte* at, Scalar value) {
  switch (dtype) {
    case DType::f64: return write_as(at, value.real);
    case DType::f32: return write_as(at, static_cast<float>(value.real));
    case DType::bf16: return write_as(at, bf16_bits(static_cast<float>(value.real)));
    case DType::f16: return write_as(at, f16_bits(static_cast<float>(value.real)));
    case DType::i64: return write_as(at, value.integer);
    case DType::i32: return write_as(at, static_cast<std::int32_t>(value.integer));
    case DType::i8: return write_as(at, static_cast<std::int8_t>(value.integer));
    case DType::u8: return write_as(at, static_cast<std::uint8_t>(value.integer));
    case DType::boolean: return write_as(at, static_cast<std::uint8_t>(value.integer != 0));
    case DType::c64:
    case DType::c128: break;
  }
  throw InternalError("a complex element in a kernel");
}

Scratch::Scratch(const BufferInfo& info)
    : bytes(size_in_bytes(info.dtype) * static_cast<std::size_t>(info.count)),
      written(static_cast<std::size_t>(info.count)) {
  if (info.space == Space::shared) uses.resize(static_cast<std::size_t>(info.count));
}

void Target::fail(const std::string& text, const char* label) const {
  throw InternalError(fmt::format("kernel {}: {}  [{}]", kernel->name, text, label));
}

void Target::check_alignment(int alignment, std::int64_t index) const {
  if (alignment == 0) return;
  const auto address = (scratch ? 0 : reinterpret_cast<std::uintptr_t>(data)) +
                       static_cast<std::uintptr_t>(index) * size_in_bytes(info->dtype);
  if (address % static_cast<std::uintptr_t>(alignment) != 0)
    fail(fmt::format("{}[{}] is not aligned to {} bytes", info->name, index, alignment), "alignment");
}

std::byte* Target::element(std::int64_t index, const char* verb) const {
  if (index < 0 || index >= count)
    fail(fmt::format("{} {}[{}], which has {} elements", verb, info->name, index, count), "out_of_bounds");
  if (reached) *reached = std::max(*reached, index + 1);
  return data + static_cast<std::size_t>(index) * size_in_bytes(info->dtype);
}

Scalar Target::load(std::int64_t index, const Actor& actor) const {
  const std::byte* at = element(index, "load of");
  if (scratch) {
    const auto i = static_cast<std::size_t>(index);
    if (scratch->written[i] != Written::yes)
      fail(fmt::format(
               "load of {}[{}], {}", info->name, index,
               scratch->written[i] == Written::never ? "which was never written" : "whose copy was not waited for"),
           "uninitialised");
    note_read(index, actor);
  }
  return read_element(info->dtype, at);
}

std::vector<Scalar> Target::load_chunk(std::int64_t index, std::int64_t all, std::int64_t given,
                                       const Actor& actor) const {
  std::vector<Scalar> values;
  for (std::int64_t i = 0; i < all; ++i) values.push_back(i < given ? load(index + i, actor) : Scalar{});
  return values;
}

/// Throws if another thread wrote this element of shared memory since the last barrier.
void Target::note_read(std::int64_t index, const Actor& actor) const {
  if (scratch->uses.empty()) return;
  for (RunningRegion* region : actor.regions)
    if (region->note_read(*this, index, actor)) return;
  SharedUse& use = scratch->uses[index];
  if (use.write_phase == actor.phase && use.writer != actor.thread)
    fail(fmt::format("thread {} reads {}[{}], which thread {} wrote with no barrier between", actor.thread,
                     info->name, index, use.writer),
         "race");
  use.many_readers = use.read_phase == actor.phase && (use.many_readers || use.reader != actor.thread);
  use.read_phase = actor.phase;
  use.reader = actor.thread;
}

/// Throws if another thread read or wrote this element of shared memory since the last barrier.
void Target::note_write(std::int64_t index, const Actor& actor) const {
  if (scratch->uses.empty()) return;
  for (RunningRegion* region : actor.regions)
    if (region->note_write(*this, index, actor)) return;
  SharedUse& use = scratch->uses[index];
  const bool read = use.read_phase == actor.phase && (use.many_readers || use.reader != actor.thread);
  const bool wrote = use.write_phase == actor.phase && use.writer != actor.thread;
  if (read || wrote)
    fail(fmt::format("thread {} writes {}[{}], which thread {} {} with no barrier between", actor.thread, info->name,
                     index, wrote ? use.writer : use.reader, wrote ? "wrote" : "read"),
         "race");
  use.write_phase = actor.phase;
  use.writer = actor.thread;
}

void Target::store(std::int64_t index, Scalar value, const Actor& actor) const {
  std::byte* at = element(index, "store to");
  if (scratch) {
    Written& written = scratch->written[index];
    if (written == Written::by_copy_under_way)
      fail(fmt::format("a store to {}[{}], where a copy is under way", info->name, index), "race");
    written = Written::yes;
    note_write(index, actor);
  }
  write_element(info->dtype, at, value);
}

void Target::begin_copy(std::int64_t index, const Actor& actor) const {
  element(index, "copy to");
  Written& written = scratch->written[index];
  if (written == Written::by_copy_under_way)
    fail(fmt::format("a copy to {}[{}], where another one is under way", info->name, index), "race");
  written = Written::by_copy_under_way;
  note_write(index, actor);
}

void Target::end_copy(std::int64_t index, Scalar value, const Actor& actor) const {
  scratch->written[index] = Written::yes;
  note_write(index, actor);
  write_element(info->dtype, element(index, "copy to"), value);
}

}  // namespace lathe::kernel
