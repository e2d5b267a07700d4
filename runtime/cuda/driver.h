#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/dtype.h"

namespace lathe::cuda {

/// The functions of the CUDA driver that Lathe uses, with one context per GPU. Handles are the driver's and must be
/// released by the caller; the classes of device.h do so. All functions throw UserError: [out_of_memory] for a failed
/// allocation, [launch] for a rejected launch, [device_lost] if a kernel destroyed the context, [driver] otherwise.
/// Messages contain the call and the driver's name of the error.
class Driver {
 public:
  using Pointer = std::uint64_t;  ///< device memory
  using Handle = void*;           ///< context, stream, event, module, function, graph

  virtual ~Driver() = default;

  virtual int device_count() = 0;
  virtual std::string device_name(int device) = 0;
  /// Returns 90 for "sm_90": the compute capability, without the suffix for architecture-specific features.
  virtual int compute_capability(int device) = 0;
  virtual std::uint64_t total_memory(int device) = 0;
  /// Returns an id that is unique among all GPUs of all machines, independent of the device number: 32 hexadecimal
  /// digits.
  virtual std::string device_id(int device) = 0;
  /// Peak rates of a device per second, from its clocks: f32 FLOPs (a multiply-add counts as two) and bytes of
  /// memory.
  struct Peak {
    double flops = 0, bytes = 0;
  };
  virtual Peak peak(int device) = 0;

  /// Retains the primary context of a device and makes it current in this thread.
  virtual Handle retain_context(int device) = 0;
  virtual void release_context(int device) = 0;
  virtual void make_current(Handle context) = 0;

  virtual Pointer allocate(std::size_t bytes) = 0;
  virtual void free(Pointer memory) noexcept = 0;
  virtual void copy_to_device(Pointer to, const void* from, std::size_t bytes, Handle stream) = 0;
  virtual void copy_to_host(void* to, Pointer from, std::size_t bytes, Handle stream) = 0;
  virtual void copy_on_device(Pointer to, Pointer from, std::size_t bytes, Handle stream) = 0;
  virtual void fill(Pointer to, unsigned char byte, std::size_t bytes, Handle stream) = 0;

  virtual Handle create_stream() = 0;
  virtual void destroy_stream(Handle stream) noexcept = 0;
  /// Waits for all work on the stream. Throws if its kernels failed.
  virtual void synchronize(Handle stream) = 0;

  /// Starts a capture: until end_capture(), work on the stream is recorded in a graph and does not run.
  virtual void begin_capture(Handle stream) = 0;
  /// Returns the graph, ready to run.
  virtual Handle end_capture(Handle stream) = 0;
  /// Enqueues a run of a graph.
  virtual void launch_graph(Handle graph, Handle stream) = 0;
  virtual void destroy_graph(Handle graph) noexcept = 0;

  virtual Handle create_event() = 0;
  virtual void destroy_event(Handle event) noexcept = 0;
  /// Enqueues the event. It completes and records the time after all earlier work on the stream.
  virtual void record(Handle event, Handle stream) = 0;
  /// Makes later work on `stream` wait for the last recording of the event.
  virtual void wait(Handle stream, Handle event) = 0;
  /// Returns whether the event has completed. An event that was never recorded has completed.
  virtual bool has_passed(Handle event) = 0;
  /// Returns the seconds between two completed events.
  virtual double seconds_between(Handle start, Handle end) = 0;

  virtual Handle load_module(std::string_view cubin) = 0;
  virtual void unload_module(Handle module) noexcept = 0;
  virtual Handle find_function(Handle module, const std::string& name) = 0;
  /// Allows launches with this much dynamic shared memory.
  virtual void allow_shared_memory(Handle function, std::int64_t bytes) = 0;
  /// Returns the largest number of blocks of a cooperative launch on the current GPU, each with this many threads and
  /// bytes of dynamic shared memory: they are all resident at the same time. 0 if there are no cooperative launches.
  virtual std::int64_t most_resident_blocks(Handle function, int threads, std::int64_t shared_bytes) = 0;

  /// A tensor from which TMA copies boxes: bf16 or f16, innermost dim first, with the strides in bytes of all other
  /// dims. Boxes are stored to shared memory in the 128-byte swizzle, with zeros beyond the tensor's bounds.
  struct Tensor {
    DType dtype = bf16;
    Pointer address = 0;
    std::vector<std::uint64_t> sizes, strides;
    std::vector<std::uint32_t> box;
  };
  /// A CUtensorMap, which is a kernel argument.
  struct alignas(64) TensorMap {
    std::array<std::uint64_t, 16> words = {};
  };
  virtual TensorMap encode(const Tensor& tensor) = 0;

  struct Launch {
    Handle function = nullptr;
    std::array<std::int64_t, 3> grid = {1, 1, 1};
    std::array<int, 3> block = {1, 1, 1};
    std::int64_t shared_bytes = 0;
    bool is_cooperative = false;  ///< all blocks are resident at the same time
    Handle stream = nullptr;
    std::span<void* const> arguments;  ///< pointers to the arguments, 8 bytes each
    std::span<TensorMap> maps = {};    ///< passed after the arguments
  };
  virtual void launch(const Launch& launch) = 0;
};

/// Loads this machine's driver, libcuda.so.1. Throws UserError [driver_missing] with the missing library and how to
/// install it; [no_device] if the driver finds no GPU.
std::unique_ptr<Driver> load_driver();

/// Throws a driver error: [out_of_memory] for CUDA_ERROR_OUT_OF_MEMORY etc. `code` must not be 0.
[[noreturn]] void throw_driver_error(std::string_view call, int code, std::string_view name);

}  // namespace lathe::cuda
