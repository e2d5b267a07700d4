#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "codegen/llvm/jit.h"
#include "ir/kernel/build/builder.h"
#include "ir/kernel/interpret/interpreter.h"

namespace lathe::testing {

/// A host buffer of any real dtype.
struct Data {
  DType dtype = f32;
  std::vector<std::byte> bytes;

  Data() = default;
  Data(DType type, std::int64_t count) : dtype(type), bytes(static_cast<std::size_t>(count) * size_in_bytes(type)) {}
  template <class T>
  static Data of(DType type, const std::vector<T>& values) {
    Data data(type, 0);
    data.bytes.resize(values.size() * sizeof(T));
    std::memcpy(data.bytes.data(), values.data(), data.bytes.size());
    return data;
  }
  template <class T>
  std::vector<T> as() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  std::int64_t count() const { return static_cast<std::int64_t>(bytes.size() / size_in_bytes(dtype)); }
};

struct Outcome {
  std::vector<Data> buffers;
  std::int64_t status = 0;
};

/// Runs the kernel in the interpreter, on copies of the buffers.
Outcome run_interpreter(const kernel::Kernel& kernel, std::vector<Data> buffers,
                        const std::vector<std::int64_t>& dims);
/// Runs compiled code, with the parallel loop split into ranges of `chunk` iterations (0: one range).
Outcome run_compiled(const codegen::CompiledKernel& code, std::vector<Data> buffers,
                     const std::vector<std::int64_t>& dims, std::int64_t chunk = 0);

/// Returns the distance of two elements in ulps; 0 for two NaNs; huge for a NaN and a number. Integers: 0 or huge.
double distance(DType dtype, const std::byte* a, const std::byte* b);
/// Requires (Catch2) that both are equal, element by element, up to `ulps`.
void require_close(const Data& actual, const Data& expected, double ulps, const std::string& what);

/// Compiles for the host, runs interpreter and code, compares all buffers and the status, and returns the outcome.
Outcome compare(const kernel::Kernel& kernel, const std::vector<Data>& buffers, const std::vector<std::int64_t>& dims,
                double ulps = 0);

/// Returns edge cases and random values of a dtype, deterministic by seed.
Data samples(DType dtype, std::int64_t count, std::uint64_t seed);

}  // namespace lathe::testing
