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

/// One element of any real dtype, as it lies in memory.
Scalar read_element(DType dtype, const std::byte* at);
void write_element(DType dtype, std::byte* at, Scalar value);

/// Who touched an element of shared memory since the last barrier.
struct SharedUse {
  std::int64_t write_phase = -1, read_phase = -1;
  std::int64_t writer = -1, reader = -1;
  bool many_readers = false;
};

enum class Written : std::uint8_t { never, by_copy_under_way, yes };

/// Scratch of a kernel: knows which elements were written, and finds races in shared memory.
struct Scratch {
  explicit Scratch(const BufferInfo& info);
  std::vector<std::byte> bytes;
  std::vector<Written> written;
  std::vector<SharedUse> uses;  ///< of shared memory
};

class RunningRegion;

/// Where an access comes from.
struct Actor {
  std::int64_t thread = 0;
  std::int64_t phase = 0;                        ///< barriers passed
  std::span<RunningRegion* const> regions = {};  ///< around (ir/kernel/machine/run.h)
};

/// The buffer an access goes to: a parameter's memory, or scratch.
struct Target {
  const Kernel* kernel = nullptr;
  const BufferInfo* info = nullptr;
  std::byte* data = nullptr;
  std::int64_t count = 0;
  Scratch* scratch = nullptr;

  Scalar load(std::int64_t index, const Actor& actor) const;
  /// Elements from `index` on: the first `given` of `all`, zeros for the others.
  std::vector<Scalar> load_chunk(std::int64_t index, std::int64_t all, std::int64_t given, const Actor& actor) const;
  void store(std::int64_t index, Scalar value, const Actor& actor) const;
  /// An asynchronous copy starts writing an element of scratch, and ends.
  void begin_copy(std::int64_t index, const Actor& actor) const;
  void end_copy(std::int64_t index, Scalar value, const Actor& actor) const;
  /// Bound memory counts as aligned as its own address is, scratch as aligned to any promise; 0 promises nothing.
  void check_alignment(int alignment, std::int64_t index) const;
  [[noreturn]] void fail(const std::string& text, const char* label) const;

 private:
  std::byte* element(std::int64_t index, const char* verb) const;
  void note_read(std::int64_t index, const Actor& actor) const;
  void note_write(std::int64_t index, const Actor& actor) const;
};

}  // namespace lathe::kernel
