#pragma once

/// C++17 around the C functions of libraries that `lathe compile` wrote: exceptions, and memory, threads and files
/// that are released at the end of a scope.
///
///     gpt library;
///     lathe::aot::check(gpt_init(&library, &dims, &states, 1), gpt_message);
///     const lathe::aot::Pool pool;
///     const lathe::aot::Memory<> workspace(gpt_workspace_bytes(&library, pool.size()));
///     gpt_call call{.., workspace.data(), workspace.size(), pool.workers()};
///     lathe::aot::check(gpt_run(&library, &call), gpt_message);
///
/// Memory is a contiguous range: it converts to std::span.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "lathe_memory.h"
#include "lathe_pool.h"
#include "lathe_safetensors.h"

namespace lathe::aot {

/// Throws std::runtime_error with the message of an error; 0 is none.
inline void check(std::int32_t error, const char* (*message)(std::int32_t)) {
  if (error != 0) throw std::runtime_error(message(error));
}

/// Zeroed memory in large pages. Throws std::bad_alloc.
template <class T = std::byte>
class Memory {
 public:
  explicit Memory(std::int64_t count)
      : size_(static_cast<std::size_t>(count)), data_(get(count), Release{size_ * sizeof(T)}) {}

  T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  T* begin() const { return data(); }
  T* end() const { return data() + size_; }
  T& operator[](std::size_t i) const { return data()[i]; }

 private:
  struct Release {
    std::size_t bytes;
    void operator()(T* memory) const { lathe_memory_release(memory, bytes); }
  };

  static T* get(std::int64_t count) {
    if (count < 0 || static_cast<std::uint64_t>(count) > PTRDIFF_MAX / sizeof(T)) throw std::bad_alloc();
    void* const memory = lathe_memory_get(static_cast<std::size_t>(count) * sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }

  std::size_t size_;
  std::unique_ptr<T[], Release> data_;
};

/// A pool of threads (lathe_pool.h). Throws std::runtime_error if they do not start.
class Pool {
 public:
  explicit Pool(std::int32_t threads = 0) {
    if (const int error = lathe_pool_start(&pool_, threads); error != 0)
      throw std::runtime_error("cannot start " + std::to_string(threads) + " threads: " + std::strerror(error));
  }
  ~Pool() { lathe_pool_stop(&pool_); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  std::int32_t size() const { return pool_.workers.count; }
  const lathe_workers* workers() const { return &pool_.workers; }

 private:
  lathe_pool pool_;
};

/// A mapped .safetensors file. Throws std::runtime_error if it cannot be read or is wrong.
class File {
 public:
  explicit File(const std::string& path) : mapping_(map(path)) {
    if (lathe_safetensors_open(&file_, mapping_.get(), mapping_.get_deleter().bytes) != 0)
      throw std::runtime_error(path + ": " + file_.message);
  }

  /// Returns the data of a tensor: file.tensor<float>("wte", "F32", {112, 32}).
  template <class T>
  const T* tensor(const std::string& name, const char* dtype, std::initializer_list<std::int64_t> shape) {
    const void* const data =
        lathe_safetensors_find(&file_, name.c_str(), dtype, static_cast<std::int32_t>(shape.size()), shape.begin());
    if (data == nullptr || sizeof(T) != lathe_dtype_bytes(dtype))
      throw std::runtime_error(data == nullptr ? std::string(file_.message)
                                               : name + ": the type is not one of " + dtype);
    return static_cast<const T*>(data);
  }

  lathe_safetensors* get() { return &file_; }

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(void* file) const { lathe_file_unmap(file, bytes); }
  };

  static std::unique_ptr<void, Unmap> map(const std::string& path) {
    std::size_t bytes = 0;
    void* const file = lathe_file_map(path.c_str(), &bytes);
    if (file == nullptr) throw std::runtime_error(path + ": " + std::strerror(errno));
    return {file, Unmap{bytes}};
  }

  std::unique_ptr<void, Unmap> mapping_;
  lathe_safetensors file_;
};

}  // namespace lathe::aot
