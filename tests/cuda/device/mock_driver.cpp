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

/// The stream's work, in order.
class MockDriver::Stream final : public MockStream {
 public:
  explicit Stream(MockDriver& driver) : driver_(driver) {}
  void put(const std::string& what, std::function<void()> work) override {
    driver_.put(static_cast<MockStream*>(this), {what, std::move(work)});
  }
  void want(std::uint64_t at, std::size_t bytes) const override { driver_.want(at, bytes); }
  std::string device() const override { return driver_.device_ids.at(driver_.retained_); }

  std::deque<Work> queue;

 private:
  MockDriver& driver_;
};

MockDriver::MockDriver() = default;
MockDriver::~MockDriver() = default;

void MockDriver::call(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (calls++ == fail_at) cuda::throw_driver_error(name, fail_code, "CUDA_ERROR_ASKED_FOR");
}

void MockDriver::want(Pointer at, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto after = memory_.upper_bound(at);
  if (after == memory_.begin()) throw std::logic_error("no such device memory");
  const auto& [start, data] = *std::prev(after);
  if (at + bytes > start + data.size()) throw std::logic_error("beyond the end of device memory");
}

std::size_t MockDriver::bytes_from(Pointer at) const {
  const std::lock_guard lock(mutex_);
  want(at, 0);
  const auto& [start, data] = *std::prev(memory_.upper_bound(at));
  return start + data.size() - at;
}

void MockDriver::want_stream(Handle stream) const {
  if (!streams_.contains(stream)) throw std::logic_error("no such stream");
}

void MockDriver::put(Handle stream, Work work) {
  std::unique_lock lock(mutex_);
  want_stream(stream);
  if (stream == capturing_) throw std::logic_error("only launches are captured");
  put_log.push_back({stream, work.what});
  streams_.at(stream)->queue.push_back(std::move(work));
  lock.unlock();
  if (order == Order::at_once) run_next(stream);
}

bool MockDriver::may_run(const Work& work) const {
  return !work.event || events_.at(work.event).passed >= work.times;
}

bool MockDriver::has_runnable(Handle stream) const {
  const std::lock_guard lock(mutex_);
  const auto& queue = streams_.at(stream)->queue;
  return !queue.empty() && may_run(queue.front());
}

void MockDriver::run_front(Handle stream) {
  std::unique_lock lock(mutex_);
  auto& queue = streams_.at(stream)->queue;
  const Work work = std::move(queue.front());
  queue.pop_front();
  run_log.push_back({stream, work.what});
  lock.unlock();
  if (work.run) work.run();
}

/// Runs the next work of a stream, and what it waits for. Returns false if there is none.
bool MockDriver::run_next(Handle stream) {
  if (order == Order::early)
    for (const auto& [other, its] : streams_)
      while (other != stream && has_runnable(other)) run_front(other);
  if (streams_.at(stream)->queue.empty()) return false;
  const Work& next = streams_.at(stream)->queue.front();
  while (!may_run(next))
    if (!run_next(events_.at(next.event).stream)) throw std::logic_error("a stream waits for ever");
  run_front(stream);
  return true;
}

int MockDriver::device_count() { return call("cuDeviceGetCount"), static_cast<int>(device_ids.size()); }
std::string MockDriver::device_id(int device) {
  return call("cuDeviceGetUuid"), device_ids.at(static_cast<std::size_t>(device));
}
std::string MockDriver::device_name(int) { return call("cuDeviceGetName"), "a mock"; }
int MockDriver::compute_capability(int) { return call("cuDeviceGetAttribute"), 90; }
std::uint64_t MockDriver::total_memory(int) { return call("cuDeviceTotalMem"), memory_bytes; }
MockDriver::Peak MockDriver::peak(int) { return call("cuDeviceGetAttribute"), Peak{6e13, 4e12}; }

MockDriver::Handle MockDriver::retain_context(int device) {
  const std::lock_guard lock(mutex_);
  call("cuDevicePrimaryCtxRetain");
  retained_ = static_cast<std::size_t>(device);
  ++contexts_;
  return handle<Handle>(1);
}
void MockDriver::release_context(int) {
  const std::lock_guard lock(mutex_);
  --contexts_;  // if this fails, the device and its context are lost
  call("cuDevicePrimaryCtxRelease");
}
void MockDriver::make_current(Handle) { call("cuCtxSetCurrent"); }

MockDriver::Pointer MockDriver::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
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
  const std::lock_guard lock(mutex_);
  used_ -= memory_.at(memory).size();
  memory_.erase(memory);
}
void MockDriver::copy_to_device(Pointer to, const void* from, std::size_t bytes, Handle stream) {
  call("cuMemcpyHtoDAsync");
  copied_to_device += bytes;
  want(to, bytes);
  put(stream, {"copy to device", [=] { std::memcpy(handle<void*>(to), from, bytes); }});
}
void MockDriver::copy_to_host(void* to, Pointer from, std::size_t bytes, Handle stream) {
  call("cuMemcpyDtoHAsync");
  want(from, bytes);
  put(stream, {"copy to host", [=] { std::memcpy(to, handle<const void*>(from), bytes); }});
}
void MockDriver::copy_on_device(Pointer to, Pointer from, std::size_t bytes, Handle stream) {
  call("cuMemcpyDtoDAsync");
  want(to, bytes), want(from, bytes);
  put(stream, {"copy", [=] { std::memcpy(handle<void*>(to), handle<const void*>(from), bytes); }});
}
void MockDriver::fill(Pointer to, unsigned char byte, std::size_t bytes, Handle stream) {
  call("cuMemsetD8Async");
  want(to, bytes);
  put(stream, {"fill", [=] { std::memset(handle<void*>(to), byte, bytes); }});
}

MockDriver::Handle MockDriver::create_stream() {
  const std::lock_guard lock(mutex_);
  call("cuStreamCreate");
  auto stream = std::make_unique<Stream>(*this);
  MockStream* const made = stream.get();
  return streams_.emplace(made, std::move(stream)).first->first;
}
void MockDriver::destroy_stream(Handle stream) noexcept {
  const std::lock_guard lock(mutex_);
  streams_.erase(stream);
}
void MockDriver::synchronize(Handle stream) {
  call("cuStreamSynchronize");
  want_stream(stream);
  while (run_next(stream)) {
  }
}

void MockDriver::begin_capture(Handle stream) {
  call("cuStreamBeginCapture");
  ++captures;
  want_stream(stream);
  if (capturing_) throw std::logic_error("a capture is already active");
  capturing_ = stream;
}
MockDriver::Handle MockDriver::end_capture(Handle stream) {
  if (capturing_ != stream) throw std::logic_error("the stream has no active capture");
  capturing_ = nullptr;
  std::vector<Recorded> launches = std::exchange(captured_, {});
  call("cuStreamEndCapture");
  const auto graph = handle<Handle>(++next_);
  graphs_[graph] = std::move(launches);
  return graph;
}
void MockDriver::launch_graph(Handle graph, Handle stream) {
  call("cuGraphLaunch");
  ++graph_launches;
  for (const Recorded& recorded : graphs_.at(graph))
    put(stream, {"launch " + functions_.at(recorded.launch.function), [this, recorded] { run(recorded); }});
  if (graphs_.at(graph).empty()) want_stream(stream);
}
void MockDriver::destroy_graph(Handle graph) noexcept { graphs_.erase(graph); }

MockDriver::Handle MockDriver::create_event() {
  const std::lock_guard lock(mutex_);
  call("cuEventCreate");
  const auto event = handle<Handle>(++next_);
  events_[event] = {};
  return event;
}
void MockDriver::destroy_event(Handle event) noexcept {
  const std::lock_guard lock(mutex_);
  events_.erase(event);
}
void MockDriver::record(Handle event, Handle stream) {
  call("cuEventRecord");
  std::unique_lock lock(mutex_);
  Event& its = events_.at(event);
  its.stream = stream;
  const std::uint64_t times = ++its.put;
  lock.unlock();
  put(stream, {"record", [this, event, times] {
                 const std::lock_guard running(mutex_);
                 events_.at(event).passed = times;
                 events_.at(event).time = ++time_;
               }});
}
void MockDriver::wait(Handle stream, Handle event) {
  call("cuStreamWaitEvent");
  std::unique_lock lock(mutex_);
  const std::uint64_t times = events_.at(event).put;
  lock.unlock();
  put(stream, {"wait", {}, event, times});
}
bool MockDriver::has_passed(Handle event) {
  const std::lock_guard lock(mutex_);
  call("cuEventQuery");
  return events_.at(event).passed >= events_.at(event).put;
}
double MockDriver::seconds_between(Handle start, Handle end) {
  const std::lock_guard lock(mutex_);
  call("cuEventElapsedTime");
  return events_.at(end).time - events_.at(start).time;
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
std::int64_t MockDriver::most_resident_blocks(Handle, int, std::int64_t) {
  return call("cuOccupancyMaxActiveBlocksPerMultiprocessor"), resident_blocks;
}

MockDriver::TensorMap MockDriver::encode(const Tensor& tensor) {
  call("cuTensorMapEncodeTiled");
  std::size_t bytes = tensor.sizes.at(0) * size_in_bytes(tensor.dtype);
  for (std::size_t d = 0; d < tensor.strides.size(); ++d) bytes += (tensor.sizes[d + 1] - 1) * tensor.strides[d];
  want(tensor.address, bytes);
  return encode_shim_map(tensor);
}

void MockDriver::launch(const Launch& launch) {
  call(launch.is_cooperative ? "cuLaunchCooperativeKernel" : "cuLaunchKernel");
  if (launch.is_cooperative && launch.grid[0] * launch.grid[1] * launch.grid[2] > resident_blocks)
    throw std::logic_error("a cooperative launch of more blocks than fit");
  Recorded recorded{launch, {}, {launch.maps.begin(), launch.maps.end()}};
  for (const void* argument : launch.arguments)
    recorded.values.push_back(*static_cast<const std::uint64_t*>(argument));
  if (launch.stream == capturing_) return captured_.push_back(std::move(recorded));
  put(launch.stream, {"launch " + functions_.at(launch.function), [this, its = std::move(recorded)] { run(its); }});
}

void MockDriver::run(const Recorded& recorded) {
  if (!on_launch) return;
  std::vector<std::uint64_t> values = recorded.values;
  std::vector<TensorMap> maps = recorded.maps;
  std::vector<void*> arguments;
  for (std::uint64_t& value : values) arguments.push_back(&value);
  Launch launch = recorded.launch;
  launch.arguments = arguments;
  launch.maps = maps;
  on_launch(functions_.at(launch.function), launch);
}

}  // namespace lathe::test
