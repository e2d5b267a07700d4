#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/hardware/gpu_info.h"
#include "ir/kernel/kernel.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/kernel_cache.h"

namespace lathe::cuda {

/// Retains the primary context of a device and makes it current in this thread. Driver calls must be made in that
/// thread.
class Context {
 public:
  Context(Driver& driver, int device) : driver_(driver), device_(device), handle_(driver.retain_context(device)) {}
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  void make_current() { driver_.make_current(handle_); }

 private:
  Driver& driver_;
  int device_;
  Driver::Handle handle_;
};

/// A stream. Move only.
class Stream {
 public:
  explicit Stream(Driver& driver) : driver_(&driver), handle_(driver.create_stream()) {}
  ~Stream() {
    if (handle_) driver_->destroy_stream(handle_);
  }
  Stream(Stream&& other) noexcept : driver_(other.driver_), handle_(std::exchange(other.handle_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(driver_, other.driver_), std::swap(handle_, other.handle_);
    return *this;
  }
  Driver::Handle handle() const { return handle_; }
  void synchronize() { driver_->synchronize(handle_); }

 private:
  Driver* driver_;
  Driver::Handle handle_;
};

/// Launches captured once and replayed as a graph: `put` puts them on the stream.
class CapturedGraph {
 public:
  CapturedGraph(Driver& driver, const Stream& stream, const std::function<void()>& put);
  ~CapturedGraph() { driver_.destroy_graph(handle_); }
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;
  void launch(const Stream& stream) const { driver_.launch_graph(handle_, stream.handle()); }

 private:
  Driver& driver_;
  Driver::Handle handle_ = nullptr;
};

/// An event with timing. Move only.
class Event {
 public:
  explicit Event(Driver& driver) : driver_(&driver), handle_(driver.create_event()) {}
  ~Event() {
    if (handle_) driver_->destroy_event(handle_);
  }
  Event(Event&& other) noexcept : driver_(other.driver_), handle_(std::exchange(other.handle_, nullptr)) {}
  Event& operator=(Event&&) = delete;
  void record(const Stream& stream) { driver_->record(handle_, stream.handle()); }
  /// Makes later work on the stream wait for the event.
  void hold(const Stream& stream) const { driver_->wait(stream.handle(), handle_); }
  bool has_passed() const { return driver_->has_passed(handle_); }
  double seconds_since(const Event& start) const { return driver_->seconds_between(start.handle_, handle_); }

 private:
  Driver* driver_;
  Driver::Handle handle_;
};

/// Owns device memory. Move only; empty memory has no address.
class DeviceMemory {
 public:
  DeviceMemory(Driver& driver, std::size_t bytes)
      : driver_(&driver), address_(bytes > 0 ? driver.allocate(bytes) : 0), bytes_(bytes) {}
  ~DeviceMemory() {
    if (address_) driver_->free(address_);
  }
  DeviceMemory(DeviceMemory&& other) noexcept
      : driver_(other.driver_), address_(std::exchange(other.address_, 0)), bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(driver_, other.driver_), std::swap(address_, other.address_), std::swap(bytes_, other.bytes_);
    return *this;
  }
  Driver::Pointer address() const { return address_; }
  std::size_t bytes() const { return bytes_; }

 private:
  Driver* driver_;
  Driver::Pointer address_;
  std::size_t bytes_;
};

/// Returns the tensors of the kernel's TMA maps for a launch, in order. A tensor without elements gives nullopt,
/// because nothing is copied from it.
std::vector<std::optional<Driver::Tensor>> tensors_of(const kernel::Kernel& kernel,
                                                      std::span<const Driver::Pointer> buffers,
                                                      std::span<const std::int64_t> dims);

/// A compiled kernel loaded on a device. Move only.
class LoadedKernel {
 public:
  /// `code` must have been compiled from `kernel` for `gpu`, an entry of gpu_infos().
  LoadedKernel(Driver& driver, const kernel::Kernel& kernel, const GpuInfo& gpu, const CompiledKernel& code);
  ~LoadedKernel();
  LoadedKernel(LoadedKernel&& other) noexcept;
  LoadedKernel& operator=(LoadedKernel&& other) noexcept;

  /// Returns whether it can be launched: always, unless its blocks must be resident and the GPU has no room for any,
  /// or no cooperative launches.
  bool can_be_resident() const { return resident_blocks_ > 0; }
  /// Enqueues a launch. The dims determine the number of blocks; without work, nothing is enqueued. `status` is the
  /// address of the status word (u64) that checks write, followed by a zero word if its blocks are resident. Throws
  /// UserError [grid_size] and those of Driver::launch.
  void launch(std::span<const Driver::Pointer> buffers, std::span<const std::int64_t> dims, Driver::Pointer status,
              const Stream& stream) const;

 private:
  Driver* driver_;
  kernel::Kernel kernel_;
  const GpuInfo* gpu_;
  Driver::Handle module_ = nullptr, function_ = nullptr;
  std::array<int, 3> threads_ = {1, 1, 1};
  std::int64_t dynamic_shared_ = 0;
  std::int64_t resident_blocks_ = 0;  ///< the most of a launch; 0: its blocks need not be resident
};

}  // namespace lathe::cuda
