#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/interpret/scalar_eval.h"

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

/// The buffer of an access: a parameter's memory, or scratch.
struct Target {
  const Kernel* kernel = nullptr;
  const BufferInfo* info = nullptr;
  std::byte* data = nullptr;
  std::int64_t count = 0;
  Scratch* scratch = nullptr;
  std::int64_t* reached = nullptr;  ///< RunOptions::reached of a parameter

  Scalar load(std::int64_t index, const Actor& actor) const;
  /// Loads `all` elements starting at `index`: the first `given` from memory, zeros for the rest.
  std::vector<Scalar> load_chunk(std::int64_t index, std::int64_t all, std::int64_t given, const Actor& actor) const;
  void store(std::int64_t index, Scalar value, const Actor& actor) const;
  /// Start and end of an asynchronous copy to an element of scratch.
  void begin_copy(std::int64_t index, const Actor& actor) const;
  void end_copy(std::int64_t index, Scalar value, const Actor& actor) const;
  /// Throws if an access breaks its promised alignment, in bytes; 0 promises nothing. Bound memory is as aligned as
  /// its address; scratch satisfies any alignment.
  void check_alignment(int alignment, std::int64_t index) const;
  [[noreturn]] void fail(const std::string& text, const char* label) const;

 private:
  std::byte* element(std::int64_t index, const char* verb) const;
  void note_read(std::int64_t index, const Actor& actor) const;
  void note_write(std::int64_t index, const Actor& actor) const;
};

}  // namespace lathe::kernel
