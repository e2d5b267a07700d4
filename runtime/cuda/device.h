#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/kernel/kernel.h"
#include "ir/machine/gpu_info.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/kernel_cache.h"

namespace lathe::cuda {

/// The primary context of a device, kept alive. Calls of the driver are made in the thread where it is current.
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

/// A stream: work in order. Move only.
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

/// Launches recorded once, to be run as one: `put` puts them on the stream.
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

/// A point in a stream, whose time is taken. Move only.
class Event {
 public:
  explicit Event(Driver& driver) : driver_(&driver), handle_(driver.create_event()) {}
  ~Event() {
    if (handle_) driver_->destroy_event(handle_);
  }
  Event(Event&& other) noexcept : driver_(other.driver_), handle_(std::exchange(other.handle_, nullptr)) {}
  Event& operator=(Event&&) = delete;
  void record(const Stream& stream) { driver_->record(handle_, stream.handle()); }
  /// Holds back what is put on the stream from now on until it has come to pass.
  void hold(const Stream& stream) const { driver_->wait(stream.handle(), handle_); }
  bool has_passed() const { return driver_->has_passed(handle_); }
  double seconds_since(const Event& start) const { return driver_->seconds_between(start.handle_, handle_); }

 private:
  Driver* driver_;
  Driver::Handle handle_;
};

/// Device memory. Move only; empty memory has no address.
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

/// What the kernel's maps are made of for a launch, in their order; nothing for one of a tensor without elements, of
/// which nothing is copied.
std::vector<std::optional<Driver::Tensor>> tensors_of(const kernel::Kernel& kernel,
                                                      std::span<const Driver::Pointer> buffers,
                                                      std::span<const std::int64_t> dims);

/// One compiled kernel on a device, ready to launch. Move only.
class LoadedKernel {
 public:
  /// `kernel` is what `code` was compiled from, for `gpu`, an entry of gpu_infos().
  LoadedKernel(Driver& driver, const kernel::Kernel& kernel, const GpuInfo& gpu, const CompiledKernel& code);
  ~LoadedKernel();
  LoadedKernel(LoadedKernel&& other) noexcept;
  LoadedKernel& operator=(LoadedKernel&& other) noexcept;

  /// Puts a launch on the stream: blocks by the dims, nothing where they leave no work. `status` is the address of
  /// the status word (u64), which checks write. UserError [grid_size], and those of Driver::launch.
  void launch(std::span<const Driver::Pointer> buffers, std::span<const std::int64_t> dims, Driver::Pointer status,
              const Stream& stream) const;

 private:
  Driver* driver_;
  kernel::Kernel kernel_;
  const GpuInfo* gpu_;
  Driver::Handle module_ = nullptr, function_ = nullptr;
  std::array<int, 3> threads_ = {1, 1, 1};
  std::int64_t dynamic_shared_ = 0;
};

}  // namespace lathe::cuda
