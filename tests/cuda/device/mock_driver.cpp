#include "tests/cuda/device/mock_driver.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "tests/cuda/host/shim_maps.h"

namespace lathe::test {

namespace {
constexpr int no_memory = 2;

template <class T>
T handle(std::uint64_t number) {
  return reinterpret_cast<T>(number);
}
}  // namespace

void MockDriver::call(std::string_view name) {
  if (calls++ == fail_at) cuda::throw_driver_error(name, fail_code, "CUDA_ERROR_ASKED_FOR");
}

void MockDriver::want(Pointer at, std::size_t bytes) const {
  const auto after = memory_.upper_bound(at);
  if (after == memory_.begin()) throw std::logic_error("no such device memory");
  const auto& [start, data] = *std::prev(after);
  if (at + bytes > start + data.size()) throw std::logic_error("beyond the end of device memory");
}

std::size_t MockDriver::bytes_from(Pointer at) const {
  want(at, 0);
  const auto& [start, data] = *std::prev(memory_.upper_bound(at));
  return start + data.size() - at;
}

void MockDriver::want_stream(Handle stream) const {
  if (!streams_.contains(stream)) throw std::logic_error("no such stream");
}

int MockDriver::device_count() { return call("cuDeviceGetCount"), 1; }
std::string MockDriver::device_name(int) { return call("cuDeviceGetName"), "a mock"; }
int MockDriver::compute_capability(int) { return call("cuDeviceGetAttribute"), 90; }
std::uint64_t MockDriver::total_memory(int) { return call("cuDeviceTotalMem"), memory_bytes; }
MockDriver::Peak MockDriver::peak(int) { return call("cuDeviceGetAttribute"), Peak{6e13, 4e12}; }

MockDriver::Handle MockDriver::retain_context(int) {
  call("cuDevicePrimaryCtxRetain");
  ++contexts_;
  return handle<Handle>(1);
}
void MockDriver::release_context(int) {
  call("cuDevicePrimaryCtxRelease");
  --contexts_;
}
void MockDriver::make_current(Handle) { call("cuCtxSetCurrent"); }

MockDriver::Pointer MockDriver::allocate(std::size_t bytes) {
  call("cuMemAlloc");
  if (used_ + bytes > memory_bytes)
    cuda::throw_driver_error(fmt::format("cuMemAlloc of {} bytes", bytes), no_memory, "CUDA_ERROR_OUT_OF_MEMORY");
  std::vector<std::byte> data(bytes, std::byte{0xff});
  const auto address = reinterpret_cast<Pointer>(data.data());
  memory_.emplace(address, std::move(data));
  used_ += bytes;
  most_bytes = std::max(most_bytes, used_);
  return address;
}
void MockDriver::free(Pointer memory) noexcept {
  used_ -= memory_.at(memory).size();
  memory_.erase(memory);
}
void MockDriver::copy_to_device(Pointer to, const void* from, std::size_t bytes, Handle stream) {
  call("cuMemcpyHtoDAsync");
  copied_to_device += bytes;
  want(to, bytes), want_stream(stream);
  std::memcpy(handle<void*>(to), from, bytes);
}
void MockDriver::copy_to_host(void* to, Pointer from, std::size_t bytes, Handle stream) {
  call("cuMemcpyDtoHAsync");
  want(from, bytes), want_stream(stream);
  std::memcpy(to, handle<const void*>(from), bytes);
}
void MockDriver::copy_on_device(Pointer to, Pointer from, std::size_t bytes, Handle stream) {
  call("cuMemcpyDtoDAsync");
  want(to, bytes), want(from, bytes), want_stream(stream);
  std::memcpy(handle<void*>(to), handle<const void*>(from), bytes);
}
void MockDriver::fill(Pointer to, unsigned char byte, std::size_t bytes, Handle stream) {
  call("cuMemsetD8Async");
  want(to, bytes), want_stream(stream);
  std::memset(handle<void*>(to), byte, bytes);
}

MockDriver::Handle MockDriver::create_stream() {
  call("cuStreamCreate");
  return *streams_.insert(handle<Handle>(++next_)).first;
}
void MockDriver::destroy_stream(Handle stream) noexcept { streams_.erase(stream); }
void MockDriver::synchronize(Handle stream) {
  call("cuStreamSynchronize");
  want_stream(stream);
}

void MockDriver::begin_capture(Handle stream) {
  call("cuStreamBeginCapture");
  ++captures;
  want_stream(stream);
  if (capturing_) throw std::logic_error("a capture goes on");
  capturing_ = stream;
}
MockDriver::Handle MockDriver::end_capture(Handle stream) {
  if (capturing_ != stream) throw std::logic_error("no such capture");
  capturing_ = nullptr;
  std::vector<Recorded> launches = std::exchange(captured_, {});
  call("cuStreamEndCapture");
  const auto graph = handle<Handle>(++next_);
  graphs_[graph] = std::move(launches);
  return graph;
}
void MockDriver::launch_graph(Handle graph, Handle stream) {
  call("cuGraphLaunch");
  want_stream(stream);
  ++graph_launches;
  for (Recorded& recorded : graphs_.at(graph)) {
    std::vector<void*> arguments;
    for (std::uint64_t& value : recorded.values) arguments.push_back(&value);
    Launch launch = recorded.launch;
    launch.arguments = arguments;
    launch.maps = recorded.maps;
    run(launch);
  }
}
void MockDriver::destroy_graph(Handle graph) noexcept { graphs_.erase(graph); }

MockDriver::Handle MockDriver::create_event() {
  call("cuEventCreate");
  const auto event = handle<Handle>(++next_);
  events_[event] = -1;
  return event;
}
void MockDriver::destroy_event(Handle event) noexcept { events_.erase(event); }
void MockDriver::record(Handle event, Handle stream) {
  call("cuEventRecord");
  want_stream(stream);
  events_.at(event) = ++time_;
}
double MockDriver::seconds_between(Handle start, Handle end) {
  call("cuEventElapsedTime");
  return events_.at(end) - events_.at(start);
}

MockDriver::Handle MockDriver::load_module(std::string_view) {
  call("cuModuleLoadData");
  return *modules_.insert(handle<Handle>(++next_)).first;
}
void MockDriver::unload_module(Handle module) noexcept { modules_.erase(module); }
MockDriver::Handle MockDriver::find_function(Handle module, const std::string& name) {
  call("cuModuleGetFunction");
  if (!modules_.contains(module)) throw std::logic_error("no such module");
  const auto function = handle<Handle>(++next_);
  functions_[function] = name;
  return function;
}
void MockDriver::allow_shared_memory(Handle, std::int64_t) { call("cuFuncSetAttribute"); }

MockDriver::TensorMap MockDriver::encode(const Tensor& tensor) {
  call("cuTensorMapEncodeTiled");
  std::size_t bytes = tensor.sizes.at(0) * size_in_bytes(tensor.dtype);
  for (std::size_t d = 0; d < tensor.strides.size(); ++d) bytes += (tensor.sizes[d + 1] - 1) * tensor.strides[d];
  want(tensor.address, bytes);
  return encode_shim_map(tensor);
}

void MockDriver::launch(const Launch& launch) {
  call("cuLaunchKernel");
  want_stream(launch.stream);
  if (launch.stream != capturing_) return run(launch);
  Recorded recorded{launch, {}, {launch.maps.begin(), launch.maps.end()}};
  for (const void* argument : launch.arguments)
    recorded.values.push_back(*static_cast<const std::uint64_t*>(argument));
  captured_.push_back(std::move(recorded));
}

void MockDriver::run(const Launch& launch) {
  if (on_launch) on_launch(functions_.at(launch.function), launch);
}

}  // namespace lathe::test
