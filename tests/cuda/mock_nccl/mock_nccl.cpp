#include "tests/cuda/mock_nccl/mock_nccl.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "tests/cuda/device/mock_stream.h"
#include "tests/cuda/mock_nccl/meeting.h"

/// The functions of nccl.h that Lathe calls.
namespace lathe::test::mock {

constexpr int success = 0, invalid_argument = 4, invalid_usage = 5, in_progress = 7;
constexpr int uint8 = 1;

struct UniqueId {
  std::array<char, 128> bytes;
};
struct Config {
  std::size_t size;
  unsigned magic, version;
  int blocking;
};

/// Calls that a rank enqueues together.
struct Batch {
  std::vector<Call> calls;
};

struct Comm {
  std::unique_ptr<Meeting> meeting;
  int rank = 0, size = 0;
  std::shared_ptr<Batch> pending;  ///< not enqueued yet
  bool was_asked = false;          ///< since it became pending
  int rounds = 0;
  std::atomic<int> error = 0;
  std::atomic<bool> is_aborted = false;
  bool is_finalized = false;
};

namespace {

MockNccl control;
std::string last_error;  ///< guarded by the control's mutex, like the following members
std::map<Comm*, std::shared_ptr<Comm>> comms;

/// State of a group of calls on this thread, between its start and its end.
thread_local int depth = 0;
thread_local std::map<Comm*, Batch> grouped;

/// Applies the environment variables; tests in one process use mock_nccl() instead.
struct FromEnvironment {
  FromEnvironment() {
    if (const char* const fault = std::getenv("MOCK_NCCL_FAULT"))
      std::istringstream(fault) >> control.fault.rank >> control.fault.after >> control.fault.code;
    if (const char* const version = std::getenv("MOCK_NCCL_VERSION")) control.version = std::atoi(version);
  }
} const from_environment;

/// Returns the id of the device that is current on this thread, which NCCL gets from the driver; "" without the
/// driver of tests/cuda/mock_cuda.
std::string current_device() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!driver) return "";
  const auto current = reinterpret_cast<const char* (*)()>(dlsym(driver, "mock_cuda_current"));
  const std::string id = current ? current() : "";
  dlclose(driver);
  return id;
}

int misuse(const std::string& what, int code = invalid_usage) {
  control.misuses.push_back(what);
  last_error = what;
  return code;
}

std::size_t count_calls(const Batch& batch, Call::Kind kind) {
  std::size_t count = 0;
  for (const Call& call : batch.calls) count += call.kind == kind ? 1 : 0;
  return count;
}

std::size_t bytes_sent(const Batch& batch, int ranks) {
  std::size_t bytes = 0;
  for (const Call& call : batch.calls) {
    if (call.kind == Call::Kind::send) bytes += call.bytes;
    if (call.kind == Call::Kind::gather) bytes += call.bytes * static_cast<std::size_t>(ranks - 1);
  }
  return bytes;
}

/// Runs on the stream: waits for the other ranks, like an NCCL kernel.
void run_batch(Comm& comm, const Batch& batch, int number) {
  bool fails = false, is_over = false;
  {
    const std::lock_guard lock(control.mutex);
    fails = control.fault.rank == comm.rank && number >= control.fault.after;
    if (fails) comm.error = control.fault.code;
  }
  const auto gives_up = [&] { return comm.is_aborted.load(); };
  while (fails && !gives_up()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  try {
    if (!fails) is_over = comm.meeting->exchange(batch.calls, static_cast<std::uint64_t>(number), gives_up);
  } catch (const std::logic_error& error) {
    const std::lock_guard lock(control.mutex);
    comm.error = misuse(error.what());
    return;
  }
  const std::lock_guard lock(control.mutex);
  control.stuck += is_over ? 0 : 1;
  control.sent += is_over ? bytes_sent(batch, comm.size) : 0;
}

/// Enqueues the pending calls.
void flush(const std::shared_ptr<Comm>& comm) {
  const std::shared_ptr<Batch> batch = std::exchange(comm->pending, nullptr);
  const int number = comm->rounds++;
  const bool gathers = count_calls(*batch, Call::Kind::gather) > 0;
  batch->calls.front().stream->put(gathers ? "ncclAllGather" : "ncclSend, ncclRecv",
                                   [=] { run_batch(*comm, *batch, number); });
}

int add(Comm* handle, Call call, std::size_t room, int type) {
  const std::lock_guard lock(control.mutex);
  const auto known = comms.find(handle);
  if (known == comms.end()) return misuse("no such communicator", invalid_argument);
  const Comm& comm = *known->second;
  if (depth == 0) return misuse("a call is outside of a group");
  if (comm.pending || !comm.meeting->has_all()) return misuse("a call before the communicator is ready");
  if (comm.is_finalized) return misuse("a call after the end of the communicator");
  if (type != uint8 || call.bytes == 0) return misuse("a call without bytes", invalid_argument);
  if (call.kind != Call::Kind::gather && (call.peer < 0 || call.peer >= comm.size || call.peer == comm.rank))
    return misuse("a message to rank " + std::to_string(call.peer), invalid_argument);
  try {
    if (call.from) call.stream->want(reinterpret_cast<std::uint64_t>(call.from), call.bytes);
    if (call.to) call.stream->want(reinterpret_cast<std::uint64_t>(call.to), room);
    if (!comm.meeting->device().empty() && call.stream->device() != comm.meeting->device())
      return misuse("a stream of another device than the communicator's", invalid_argument);
  } catch (const std::logic_error& error) {
    return misuse(error.what(), invalid_argument);
  }
  Batch& batch = grouped[handle];
  if (!batch.calls.empty() && batch.calls.front().stream != call.stream)
    return misuse("calls of one group on two streams");
  ++(call.kind == Call::Kind::gather ? control.gathers : control.messages);
  batch.calls.push_back(call);
  return success;
}

}  // namespace

}  // namespace lathe::test::mock

using namespace lathe::test;        // NOLINT(google-build-using-namespace)
using namespace lathe::test::mock;  // NOLINT(google-build-using-namespace)

extern "C" {

MockNccl* mock_nccl() { return &control; }

int ncclGetVersion(int* version) {
  *version = control.version;
  return success;
}
const char* ncclGetErrorString(int code) {
  switch (code) {
    case invalid_argument: return "invalid argument";
    case invalid_usage: return "invalid usage";
    case 6: return "remote process exited or there was a network error";
    default: return "another error";
  }
}
const char* ncclGetLastError(void*) { return last_error.c_str(); }

int ncclGetUniqueId(UniqueId* id) {
  const std::lock_guard lock(control.mutex);
  *id = {};
  const std::string made = Meeting::make_id();
  std::memcpy(id->bytes.data(), made.data(), made.size());
  return success;
}

int ncclCommInitRankConfig(Comm** made, int ranks, UniqueId id, int rank, Config* config) {
  const std::lock_guard lock(control.mutex);
  if (config->size != sizeof(Config) || config->magic != 0xcafebeef || config->version < 21400 ||
      config->blocking != 0)
    return misuse("another configuration", invalid_argument);
  auto comm = std::make_shared<Comm>();
  try {
    comm->meeting = std::make_unique<Meeting>(id.bytes.data(), rank, ranks, current_device());
  } catch (const std::logic_error& error) {
    return misuse(error.what(), invalid_argument);
  }
  comm->rank = rank;
  comm->size = ranks;
  *made = comm.get();
  comms.emplace(comm.get(), std::move(comm));
  ++control.alive;
  return in_progress;
}

int ncclCommGetAsyncError(Comm* handle, int* state) {
  std::unique_lock lock(control.mutex);
  const auto known = comms.find(handle);
  if (known == comms.end()) return misuse("no such communicator", invalid_argument);
  const std::shared_ptr<Comm> comm = known->second;
  if (const std::string clash = comm->meeting->clash(); !clash.empty() && comm->error == 0)
    comm->error = misuse("Duplicate GPU detected: " + clash);
  *state = comm->error;
  if (comm->error != 0) return success;
  if (!comm->meeting->has_all()) *state = in_progress;
  if (!comm->pending) return success;
  if (!std::exchange(comm->was_asked, true)) {
    *state = in_progress;
    return success;
  }
  lock.unlock();
  flush(comm);
  return success;
}

int ncclCommFinalize(Comm* handle) {
  const std::lock_guard lock(control.mutex);
  Comm& comm = *comms.at(handle);
  if (comm.pending || comm.is_finalized) return misuse("the end of a communicator that is not ready");
  comm.is_finalized = true;
  return success;
}
int ncclCommDestroy(Comm* handle) {
  const std::lock_guard lock(control.mutex);
  if (!comms.at(handle)->is_finalized) misuse("a communicator is destroyed before its end");
  comms.erase(handle);
  --control.alive;
  return success;
}
int ncclCommAbort(Comm* handle) {
  const std::lock_guard lock(control.mutex);
  comms.at(handle)->is_aborted = true;
  comms.erase(handle);
  --control.alive;
  ++control.aborted;
  return success;
}

int ncclGroupStart() {
  if (depth++ == 0) return success;
  const std::lock_guard lock(control.mutex);
  return misuse("a group within a group");
}
int ncclGroupEnd() {
  const std::lock_guard lock(control.mutex);
  if (--depth < 0) return misuse("the end of no group");
  if (grouped.size() != 1) misuse("a group of calls of " + std::to_string(grouped.size()) + " communicators");
  for (auto& [handle, batch] : grouped) {
    comms.at(handle)->pending = std::make_shared<Batch>(std::move(batch));
    comms.at(handle)->was_asked = false;
  }
  grouped.clear();
  return in_progress;
}

int ncclSend(const void* from, std::size_t count, int type, int peer, Comm* comm, void* stream) {
  return add(
      comm,
      {Call::Kind::send, peer, static_cast<const std::byte*>(from), nullptr, count, static_cast<MockStream*>(stream)},
      count, type);
}
int ncclRecv(void* to, std::size_t count, int type, int peer, Comm* comm, void* stream) {
  return add(
      comm,
      {Call::Kind::receive, peer, nullptr, static_cast<std::byte*>(to), count, static_cast<MockStream*>(stream)},
      count, type);
}
int ncclAllGather(const void* from, void* to, std::size_t count, int type, Comm* comm, void* stream) {
  const auto ranks = static_cast<std::size_t>(comm->size);
  return add(comm,
             {Call::Kind::gather, -1, static_cast<const std::byte*>(from), static_cast<std::byte*>(to), count,
              static_cast<MockStream*>(stream)},
             count * ranks, type);
}
}
