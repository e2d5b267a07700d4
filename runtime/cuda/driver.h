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

/// What Lathe asks of the CUDA driver, one GPU a context. Handles are the driver's own and belong to the caller; the
/// classes of device.h release them. Everything throws UserError: [out_of_memory] where an allocation fails, [launch]
/// where a launch is refused, [device_lost] where a kernel brought the context down, [driver] for the rest; each
/// names the call and the driver's own name of the error.
class Driver {
 public:
  using Pointer = std::uint64_t;  ///< device memory
  using Handle = void*;           ///< context, stream, event, module, function, graph

  virtual ~Driver() = default;

  virtual int device_count() = 0;
  virtual std::string device_name(int device) = 0;
  /// "sm_90": the architecture, without the suffix that a chip's own features have.
  virtual int compute_capability(int device) = 0;
  virtual std::uint64_t total_memory(int device) = 0;
  /// Which one it is of all GPUs of all machines, whatever number it has here: 32 hexadecimal digits.
  virtual std::string device_id(int device) = 0;
  /// What a device reaches at most in a second, by its clocks: f32 multiply-adds, counted as two, and bytes of
  /// memory.
  struct Peak {
    double flops = 0, bytes = 0;
  };
  virtual Peak peak(int device) = 0;

  /// The primary context of a device, made current for this thread.
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
  /// Waits for all work of the stream; what its kernels did wrong shows here.
  virtual void synchronize(Handle stream) = 0;

  /// From here to end_capture() what is put on the stream does not run but goes into a graph.
  virtual void begin_capture(Handle stream) = 0;
  /// The graph, ready to run.
  virtual Handle end_capture(Handle stream) = 0;
  /// Puts one run of a graph on the stream.
  virtual void launch_graph(Handle graph, Handle stream) = 0;
  virtual void destroy_graph(Handle graph) noexcept = 0;

  virtual Handle create_event() = 0;
  virtual void destroy_event(Handle event) noexcept = 0;
  /// Puts the event on the stream: it comes to pass, and takes the time, when all before it is done.
  virtual void record(Handle event, Handle stream) = 0;
  /// What is put on the stream from now on begins when the event, as it was put on its stream last, has come to pass.
  virtual void wait(Handle stream, Handle event) = 0;
  /// Whether it has; so has one that was never put on a stream.
  virtual bool has_passed(Handle event) = 0;
  /// Seconds between two events that have come to pass.
  virtual double seconds_between(Handle start, Handle end) = 0;

  virtual Handle load_module(std::string_view cubin) = 0;
  virtual void unload_module(Handle module) noexcept = 0;
  virtual Handle find_function(Handle module, const std::string& name) = 0;
  /// Allows launches with so much shared memory given at launch.
  virtual void allow_shared_memory(Handle function, std::int64_t bytes) = 0;

  /// What TMA copies boxes of: a tensor of bf16 or f16, the innermost dim first, with the strides in bytes of all but
  /// that one. Boxes go to shared memory in the 128-byte swizzle, with zeros beyond the ends.
  struct Tensor {
    DType dtype = bf16;
    Pointer address = 0;
    std::vector<std::uint64_t> sizes, strides;
    std::vector<std::uint32_t> box;
  };
  /// CUtensorMap, an argument of a kernel.
  struct alignas(64) TensorMap {
    std::array<std::uint64_t, 16> words = {};
  };
  virtual TensorMap encode(const Tensor& tensor) = 0;

  struct Launch {
    Handle function = nullptr;
    std::array<std::int64_t, 3> grid = {1, 1, 1};
    std::array<int, 3> block = {1, 1, 1};
    std::int64_t shared_bytes = 0;
    Handle stream = nullptr;
    std::span<void* const> arguments;  ///< a pointer to each, of 8 bytes
    std::span<TensorMap> maps = {};    ///< arguments behind them
  };
  virtual void launch(const Launch& launch) = 0;
};

/// The machine's own driver, libcuda.so.1, loaded when it is asked for. UserError [driver_missing] tells what is
/// missing and how to get it; [no_device] where the driver finds no GPU.
std::unique_ptr<Driver> load_driver();

/// How an error of the driver is told: [out_of_memory] for CUDA_ERROR_OUT_OF_MEMORY and so on. `code` is not 0.
[[noreturn]] void throw_driver_error(std::string_view call, int code, std::string_view name);

}  // namespace lathe::cuda
