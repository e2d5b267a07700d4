#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/support/error.h"

namespace lathe::kernel {

/// Reads one element of any real dtype from its memory representation.
Scalar read_element(DType dtype, const std::byte* at);
void write_element(DType dtype, std::byte* at, Scalar value);

/// The threads that accessed an element of shared memory since the last barrier.
struct SharedUse {
  std::int64_t write_phase = -1, read_phase = -1;
  std::int64_t writer = -1, reader = -1;
  bool many_readers = false;
};

enum class Written : std::uint8_t { never, by_copy_under_way, yes };

/// Scratch of a kernel. Tracks which elements were written, and detects races in shared memory.
struct Scratch {
  explicit Scratch(const BufferInfo& info);
  /// Makes it like a new one: no element is written.
  void clear();

  std::vector<std::byte> bytes;
  std::vector<Written> written;
  std::vector<SharedUse> uses;  ///< shared memory only
};

class RunningRegion;

/// The origin of an access.
struct Actor {
  std::int64_t thread = 0;
  std::int64_t phase = 0;                        ///< barriers passed
  std::span<RunningRegion* const> regions = {};  ///< enclosing regions (ir/kernel/intrinsics/run.h)
};

/// The buffer of an access: a parameter's memory, or scratch. Accesses are inlined: kernels spend much of their time
/// on them.
struct Target {
  const Kernel* kernel = nullptr;
  const BufferInfo* info = nullptr;
  std::byte* data = nullptr;
  std::int64_t count = 0;
  Scratch* scratch = nullptr;
  std::int64_t* reached = nullptr;  ///< RunOptions::reached of a parameter
  std::int64_t element_bytes = 0;

  Scalar load(std::int64_t index, const Actor& actor) const;
  /// Loads `all` elements starting at `index`: the first `given` from memory, zeros for the rest.
  std::vector<Scalar> load_chunk(std::int64_t index, std::int64_t all, std::int64_t given, const Actor& actor) const;
  void store(std::int64_t index, Scalar value, const Actor& actor) const;
  /// Start and end of an asynchronous copy to an element of scratch.
  void begin_copy(std::int64_t index, const Actor& actor) const;
  void end_copy(std::int64_t index, Scalar value, const Actor& actor) const;
  /// Throws if an access breaks its promised alignment, in bytes; 0 promises nothing. Bound memory is as aligned as
  /// its address; scratch satisfies any alignment.
  void check_alignment(int alignment, std::int64_t index) const {
    if (alignment != 0) check_address(alignment, index);
  }
  [[noreturn]] void fail(const std::string& text, const char* label) const;

 private:
  std::byte* element(std::int64_t index, const char* verb) const;
  void check_address(int alignment, std::int64_t index) const;
  void note_read(std::int64_t index, const Actor& actor) const;
  void note_write(std::int64_t index, const Actor& actor) const;
  /// Returns whether an enclosing region checks the access.
  bool region_notes_read(std::int64_t index, const Actor& actor) const;
  bool region_notes_write(std::int64_t index, const Actor& actor) const;
  [[noreturn]] void fail_bounds(std::int64_t index, const char* verb) const;
  [[noreturn]] void fail_unwritten(std::int64_t index) const;
  [[noreturn]] void fail_under_copy(std::int64_t index) const;
  [[noreturn]] void fail_read_race(std::int64_t index, const Actor& actor) const;
  [[noreturn]] void fail_write_race(std::int64_t index, const Actor& actor, bool wrote) const;
};

namespace detail {

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

}  // namespace detail

inline Scalar read_element(DType dtype, const std::byte* at) {
  using detail::read_as;
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

inline void write_element(DType dtype, std::byte* at, Scalar value) {
  using detail::write_as;
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

inline std::byte* Target::element(std::int64_t index, const char* verb) const {
  if (index < 0 || index >= count) fail_bounds(index, verb);
  if (reached) *reached = std::max(*reached, index + 1);
  return data + index * element_bytes;
}

/// Throws if another thread wrote this element of shared memory since the last barrier.
inline void Target::note_read(std::int64_t index, const Actor& actor) const {
  if (scratch->uses.empty()) return;
  if (!actor.regions.empty() && region_notes_read(index, actor)) return;
  SharedUse& use = scratch->uses[static_cast<std::size_t>(index)];
  if (use.write_phase == actor.phase && use.writer != actor.thread) fail_read_race(index, actor);
  use.many_readers = use.read_phase == actor.phase && (use.many_readers || use.reader != actor.thread);
  use.read_phase = actor.phase;
  use.reader = actor.thread;
}

/// Throws if another thread read or wrote this element of shared memory since the last barrier.
inline void Target::note_write(std::int64_t index, const Actor& actor) const {
  if (scratch->uses.empty()) return;
  if (!actor.regions.empty() && region_notes_write(index, actor)) return;
  SharedUse& use = scratch->uses[static_cast<std::size_t>(index)];
  const bool read = use.read_phase == actor.phase && (use.many_readers || use.reader != actor.thread);
  const bool wrote = use.write_phase == actor.phase && use.writer != actor.thread;
  if (read || wrote) fail_write_race(index, actor, wrote);
  use.write_phase = actor.phase;
  use.writer = actor.thread;
}

inline Scalar Target::load(std::int64_t index, const Actor& actor) const {
  const std::byte* at = element(index, "load of");
  if (scratch) {
    if (scratch->written[static_cast<std::size_t>(index)] != Written::yes) fail_unwritten(index);
    note_read(index, actor);
  }
  return read_element(info->dtype, at);
}

inline void Target::store(std::int64_t index, Scalar value, const Actor& actor) const {
  std::byte* at = element(index, "store to");
  if (scratch) {
    Written& written = scratch->written[static_cast<std::size_t>(index)];
    if (written == Written::by_copy_under_way) fail_under_copy(index);
    written = Written::yes;
    note_write(index, actor);
  }
  write_element(info->dtype, at, value);
}

}  // namespace lathe::kernel
