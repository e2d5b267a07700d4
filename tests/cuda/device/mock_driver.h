#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "runtime/cuda/driver.h"
#include "tests/cuda/device/mock_stream.h"

namespace lathe::test {

/// A driver of a GPU whose memory is the host's. It counts what is alive, refuses what it never gave out, and fails
/// where a test asks for it. One thread puts work on streams; another one may look at events.
class MockDriver final : public cuda::Driver {
 public:
  MockDriver();
  ~MockDriver() override;

  /// When the work of streams runs. On a GPU any order may happen that the streams and events allow: of two streams
  /// the late and the early one are the ends between which it lies.
  enum class Order {
    at_once,  ///< when it is put on its stream
    late,     ///< when somebody waits for its stream, or that for its event
    early,    ///< when somebody waits for any stream: others go first, as far as events let them
  };
  Order order = Order::at_once;
  std::vector<std::string> device_ids = {std::string(32, '0')};  ///< of the devices that there are
  std::uint64_t memory_bytes = 1 << 20;                          ///< of the device
  int fail_at = -1;  ///< the call, counted from 0, that fails with `fail_code`
  int fail_code = 999;
  int calls = 0;
  /// What a launch does, by the function's name; pointers to the arguments as the driver gets them.
  std::function<void(const std::string& function, const Launch&)> on_launch;

  /// Everything given out and not given back: memory, streams, modules, contexts, graphs, events.
  std::size_t alive() const {
    return memory_.size() + streams_.size() + modules_.size() + contexts_ + graphs_.size() + events_.size();
  }
  std::uint64_t most_bytes = 0;  ///< that were allocated at once
  int captures = 0, graph_launches = 0;
  struct Logged {
    Handle stream;
    std::string what;  ///< "launch scale", "wait", "ncclSend"
  };
  std::vector<Logged> put_log, run_log;  ///< work in the order in which the host put it on streams, and it ran
  std::uint64_t copied_to_device = 0;    ///< bytes
  /// The bytes from an address to the end of its allocation.
  std::size_t bytes_from(Pointer at) const;

  int device_count() override;
  std::string device_name(int device) override;
  int compute_capability(int device) override;
  std::uint64_t total_memory(int device) override;
  std::string device_id(int device) override;
  Peak peak(int device) override;
  Handle retain_context(int device) override;
  void release_context(int device) override;
  void make_current(Handle context) override;
  Pointer allocate(std::size_t bytes) override;
  void free(Pointer memory) noexcept override;
  void copy_to_device(Pointer to, const void* from, std::size_t bytes, Handle stream) override;
  void copy_to_host(void* to, Pointer from, std::size_t bytes, Handle stream) override;
  void copy_on_device(Pointer to, Pointer from, std::size_t bytes, Handle stream) override;
  void fill(Pointer to, unsigned char byte, std::size_t bytes, Handle stream) override;
  Handle create_stream() override;
  void destroy_stream(Handle stream) noexcept override;
  void synchronize(Handle stream) override;
  void begin_capture(Handle stream) override;
  Handle end_capture(Handle stream) override;
  void launch_graph(Handle graph, Handle stream) override;
  void destroy_graph(Handle graph) noexcept override;
  Handle create_event() override;
  void destroy_event(Handle event) noexcept override;
  void record(Handle event, Handle stream) override;
  void wait(Handle stream, Handle event) override;
  bool has_passed(Handle event) override;
  double seconds_between(Handle start, Handle end) override;
  Handle load_module(std::string_view cubin) override;
  void unload_module(Handle module) noexcept override;
  Handle find_function(Handle module, const std::string& name) override;
  void allow_shared_memory(Handle function, std::int64_t bytes) override;
  TensorMap encode(const Tensor& tensor) override;
  void launch(const Launch& launch) override;

 private:
  struct Event {
    std::uint64_t put = 0, passed = 0;  ///< how often
    double time = -1;                   ///< of the last time; each takes a second more than the last
    Handle stream = nullptr;            ///< where it was put last
  };
  struct Work {
    std::string what;
    std::function<void()> run;
    Handle event = nullptr;  ///< that it waits for
    std::uint64_t times = 0;
  };
  class Stream;
  /// A launch with its own copy of what the arguments were.
  struct Recorded {
    Launch launch;
    std::vector<std::uint64_t> values;
    std::vector<TensorMap> maps;
  };

  void call(std::string_view name);
  /// Whether [at, at + bytes) lies in one allocation.
  void want(Pointer at, std::size_t bytes) const;
  void want_stream(Handle stream) const;
  void put(Handle stream, Work work);
  bool may_run(const Work& work) const;
  bool has_runnable(Handle stream) const;
  void run_front(Handle stream);
  bool run_next(Handle stream);
  void run(const Recorded& recorded);

  mutable std::recursive_mutex mutex_;  ///< not held while work runs
  std::map<Pointer, std::vector<std::byte>> memory_;
  std::map<Handle, std::unique_ptr<Stream>> streams_;
  std::set<Handle> modules_;
  std::map<Handle, std::vector<Recorded>> graphs_;
  std::map<Handle, Event> events_;
  Handle capturing_ = nullptr;  ///< a stream
  std::vector<Recorded> captured_;
  double time_ = 0;
  std::map<Handle, std::string> functions_;
  std::size_t contexts_ = 0, retained_ = 0;  ///< how many, and of which device the latest is
  std::uint64_t used_ = 0, next_ = 1;
};

}  // namespace lathe::test
