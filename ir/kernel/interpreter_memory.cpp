#include "ir/kernel/interpreter_memory.h"

#include <cstring>

#include <fmt/core.h>

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
    if (!scratch->uses.empty() && !note_read_of_stage(index, actor)) {
      SharedUse& use = scratch->uses[i];
      if (use.write_phase == actor.phase && use.writer != actor.thread)
        fail(fmt::format("thread {} reads {}[{}], which thread {} wrote with no barrier between", actor.thread,
                         info->name, index, use.writer),
             "race");
      use.many_readers = use.read_phase == actor.phase && (use.many_readers || use.reader != actor.thread);
      use.read_phase = actor.phase;
      use.reader = actor.thread;
    }
  }
  return read_element(info->dtype, at);
}

std::vector<Scalar> Target::load_piece(std::int64_t index, std::int64_t all, std::int64_t given,
                                       const Actor& actor) const {
  std::vector<Scalar> values;
  for (std::int64_t i = 0; i < all; ++i) values.push_back(i < given ? load(index + i, actor) : Scalar{});
  return values;
}

/// What a stage of a pipeline has filled is read in its own use: before, its copies may be under way, and after,
/// those of the next turn. Whether it is such an element.
bool Target::note_read_of_stage(std::int64_t index, const Actor& actor) const {
  const SharedUse& use = scratch->uses[static_cast<std::size_t>(index)];
  if (use.filled < 0) return false;
  if (!actor.pipeline || actor.pipeline->turn != use.filled)
    fail(fmt::format("thread {} reads {}[{}], which turn {} of a pipeline filled, {}", actor.thread, info->name,
                     index, use.filled,
                     actor.pipeline && actor.pipeline->turn >= 0 ? fmt::format("in turn {}", actor.pipeline->turn)
                                                                 : "outside the stage"),
         "stage");
  return true;
}

/// A fill may overwrite what turns filled that consumers are through with. Whether no barrier is wanted for it.
bool Target::note_write_of_stage(std::int64_t index, const Actor& actor) const {
  SharedUse& use = scratch->uses[static_cast<std::size_t>(index)];
  const std::int64_t before = use.filled;
  if (!actor.pipeline || !actor.pipeline->fills) {
    if (before >= 0)
      fail(fmt::format("thread {} writes {}[{}], which a pipeline fills", actor.thread, info->name, index), "stage");
    if (actor.pipeline) use.consumers_own = true;
    return false;
  }
  const std::int64_t turn = actor.pipeline->turn;
  if (use.consumers_own)
    fail(fmt::format("a pipeline fills {}[{}], which its consumers write", info->name, index), "stage");
  if (before >= 0 && before != turn && before > turn - actor.pipeline->stages)
    fail(fmt::format("turn {} of a pipeline fills {}[{}], which turn {} filled and may still use", turn, info->name,
                     index, before),
         "stage");
  if (before == turn && use.writer != actor.thread)
    fail(fmt::format("threads {} and {} fill {}[{}] in one turn", use.writer, actor.thread, info->name, index),
         "race");
  use.filled = turn;
  if (before < 0) return false;
  use.writer = actor.thread;
  return true;
}

/// Finds what else touches the element of shared memory between the same barriers.
void Target::note_write(std::int64_t index, const Actor& actor) const {
  if (scratch->uses.empty() || note_write_of_stage(index, actor)) return;
  SharedUse& use = scratch->uses[static_cast<std::size_t>(index)];
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
    Written& written = scratch->written[static_cast<std::size_t>(index)];
    if (written == Written::by_copy_under_way)
      fail(fmt::format("a store to {}[{}], where a copy is under way", info->name, index), "race");
    written = Written::yes;
    note_write(index, actor);
  }
  write_element(info->dtype, at, value);
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

}  // namespace lathe::kernel
