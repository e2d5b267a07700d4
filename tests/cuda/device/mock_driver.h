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

/// A driver of a GPU whose memory is host memory. It counts live objects, rejects handles that it did not return, and
/// fails where a test wants it to. One thread enqueues work; another one may query events.
class MockDriver final : public cuda::Driver {
 public:
  MockDriver();
  ~MockDriver() override;

  /// When the work of streams runs. A GPU may use any order that streams and events allow; for two streams, late and
  /// early are the extremes.
  enum class Order {
    at_once,  ///< when it is enqueued
    late,     ///< when something waits for its stream, or for its event
    early,    ///< when something waits for any stream: others run first, if their events allow it
  };
  Order order = Order::at_once;
  std::vector<std::string> device_ids = {std::string(32, '0')};  ///< one id per device
  std::uint64_t memory_bytes = 1 << 20;                          ///< memory of the device
  std::int64_t resident_blocks = 3;                              ///< of a cooperative launch; 0: there are none
  int fail_at = -1;  ///< number of the call, from 0, that fails with `fail_code`
  int fail_code = 999;
  int calls = 0;
  /// Called for a launch with the function's name and pointers to its arguments, as the driver gets them.
  std::function<void(const std::string& function, const Launch&)> on_launch;

  /// Number of objects that were created and not released: memory, streams, modules, contexts, graphs, events.
  std::size_t alive() const {
    return memory_.size() + streams_.size() + modules_.size() + contexts_ + graphs_.size() + events_.size();
  }
  std::uint64_t most_bytes = 0;  ///< peak allocated bytes
  int captures = 0, graph_launches = 0;
  struct Logged {
    Handle stream;
    std::string what;  ///< "launch scale", "wait", "ncclSend"
  };
  std::vector<Logged> put_log, run_log;  ///< work in the order in which the host enqueued it, and in the order in
                                         ///< which it ran
  std::uint64_t copied_to_device = 0;    ///< bytes
  /// Returns the number of bytes from an address to the end of its allocation.
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
  std::int64_t most_resident_blocks(Handle function, int threads, std::int64_t shared_bytes) override;
  TensorMap encode(const Tensor& tensor) override;
  void launch(const Launch& launch) override;

 private:
  struct Event {
    std::uint64_t put = 0, passed = 0;  ///< counts of records
    double time = -1;                   ///< time of the last record; each one is a second after the previous one
    Handle stream = nullptr;            ///< stream of the last record
  };
  struct Work {
    std::string what;
    std::function<void()> run;
    Handle event = nullptr;  ///< to wait for
    std::uint64_t times = 0;
  };
  class Stream;
  /// A launch with a copy of its argument values.
  struct Recorded {
    Launch launch;
    std::vector<std::uint64_t> values;
    std::vector<TensorMap> maps;
  };

  void call(std::string_view name);
  /// Checks that [at, at + bytes) is in one allocation.
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
  Handle capturing_ = nullptr;  ///< the captured stream
  std::vector<Recorded> captured_;
  double time_ = 0;
  std::map<Handle, std::string> functions_;
  std::size_t contexts_ = 0, retained_ = 0;  ///< number of contexts, and the device of the latest one
  std::uint64_t used_ = 0, next_ = 1;
};

}  // namespace lathe::test
