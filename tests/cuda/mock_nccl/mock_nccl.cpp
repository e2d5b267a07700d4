#include "tests/cuda/mock_nccl/mock_nccl.h"

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <utility>

#include "tests/cuda/device/mock_stream.h"

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

struct Call {
  enum class Kind { send, receive, gather };
  Kind kind;
  int peer;
  const std::byte* from;
  std::byte* to;
  std::size_t bytes;
  MockStream* stream;
};

/// What a rank put on its stream at once.
struct Batch {
  std::vector<Call> calls;
};

/// Ranks that joined by one id.
struct Group {
  int size = 0;
  std::set<int> joined;
  struct Round {
    std::map<int, const Batch*> posted;  ///< by rank
    bool is_done = false;
    int left = 0;  ///< ranks
  };
  std::map<int, Round> rounds;  ///< by number
};

struct Comm {
  std::shared_ptr<Group> group;
  int rank = 0;
  std::shared_ptr<Batch> pending;  ///< not on its stream yet
  bool was_asked = false;          ///< since it is pending
  int rounds = 0;
  int error = 0;
  bool is_aborted = false, is_finalized = false;
};

namespace {

MockNccl control;
std::condition_variable changed;  ///< of all groups, under the control's mutex
std::string last_error;
std::map<std::string, std::shared_ptr<Group>> groups;  ///< by id
std::map<Comm*, std::shared_ptr<Comm>> comms;
int ids = 0;

/// What is between the start and the end of a group of calls on this thread.
thread_local int depth = 0;
thread_local std::map<Comm*, Batch> grouped;

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

/// The messages between two ranks, in order.
std::vector<const Call*> between(const Batch& batch, Call::Kind kind, int peer) {
  std::vector<const Call*> found;
  for (const Call& call : batch.calls)
    if (call.kind == kind && call.peer == peer) found.push_back(&call);
  return found;
}

void move_messages(const Batch& sender, int from, const Batch& receiver, int to) {
  const auto sends = between(sender, Call::Kind::send, to), receives = between(receiver, Call::Kind::receive, from);
  if (sends.size() != receives.size()) {
    misuse("rank " + std::to_string(from) + " sends " + std::to_string(sends.size()) + " messages to rank " +
           std::to_string(to) + ", which receives " + std::to_string(receives.size()));
    return;
  }
  for (std::size_t i = 0; i < sends.size(); ++i) {
    if (sends[i]->bytes != receives[i]->bytes) {
      misuse("a message of " + std::to_string(sends[i]->bytes) + " bytes is received as " +
             std::to_string(receives[i]->bytes));
      continue;
    }
    std::memcpy(receives[i]->to, sends[i]->from, sends[i]->bytes);
    control.sent += sends[i]->bytes;
  }
}

/// All ranks have come: the last one moves everything.
void carry_out(const Group& group, const Group::Round& round) {
  const Batch& first = *round.posted.at(0);
  const std::size_t gathers = count_calls(first, Call::Kind::gather);
  for (const auto& [rank, batch] : round.posted) {
    if (count_calls(*batch, Call::Kind::gather) != gathers || (gathers > 0 && gathers != batch->calls.size())) {
      misuse("ranks ask for different calls at the same time");
      return;
    }
    for (const auto& [other, its] : round.posted) move_messages(*batch, rank, *its, other);
  }
  for (std::size_t i = 0; i < gathers; ++i)
    for (const auto& [rank, batch] : round.posted) {
      const Call& own = batch->calls[i];
      if (own.bytes != first.calls[i].bytes) misuse("ranks gather different numbers of bytes");
      for (const auto& [other, its] : round.posted)
        std::memmove(its->calls[i].to + own.bytes * static_cast<std::size_t>(rank), own.from, own.bytes);
      control.sent += own.bytes * static_cast<std::size_t>(group.size - 1);
    }
}

/// On the stream: waits for the other ranks, as a kernel of NCCL does.
void run_batch(const std::shared_ptr<Comm>& comm, const Batch& batch, int number) {
  std::unique_lock lock(control.mutex);
  Group& group = *comm->group;
  const MockNccl::Fault& fault = control.fault;
  const bool fails = fault.rank == comm->rank && number >= fault.after;
  if (fails) comm->error = fault.code;
  Group::Round& round = group.rounds[number];
  if (!fails) round.posted[comm->rank] = &batch;
  if (static_cast<int>(round.posted.size()) == group.size) {
    carry_out(group, round);
    round.is_done = true;
  }
  changed.notify_all();
  changed.wait(lock, [&] { return round.is_done || comm->is_aborted; });
  if (!round.is_done) {
    round.posted.erase(comm->rank);
    ++control.stuck;
  } else if (++round.left == group.size) {
    group.rounds.erase(number);
  }
}

/// Puts what is pending on its stream.
void flush(const std::shared_ptr<Comm>& comm) {
  const std::shared_ptr<Batch> batch = std::exchange(comm->pending, nullptr);
  const int number = comm->rounds++;
  const bool gathers = count_calls(*batch, Call::Kind::gather) > 0;
  batch->calls.front().stream->put(gathers ? "ncclAllGather" : "ncclSend, ncclRecv",
                                   [=] { run_batch(comm, *batch, number); });
}

int add(Comm* handle, Call call, std::size_t room, int type) {
  const std::lock_guard lock(control.mutex);
  const auto known = comms.find(handle);
  if (known == comms.end()) return misuse("no such communicator", invalid_argument);
  const Comm& comm = *known->second;
  if (depth == 0) return misuse("a call stands outside a group");
  if (comm.pending || static_cast<int>(comm.group->joined.size()) < comm.group->size)
    return misuse("a call before the communicator is ready");
  if (comm.is_finalized) return misuse("a call after the end of the communicator");
  if (type != uint8 || call.bytes == 0) return misuse("a call without bytes", invalid_argument);
  if (call.kind != Call::Kind::gather && (call.peer < 0 || call.peer >= comm.group->size || call.peer == comm.rank))
    return misuse("a message to rank " + std::to_string(call.peer), invalid_argument);
  try {
    if (call.from) call.stream->want(reinterpret_cast<std::uint64_t>(call.from), call.bytes);
    if (call.to) call.stream->want(reinterpret_cast<std::uint64_t>(call.to), room);
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
  *version = 22703;
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
  const int number = ++ids;
  std::memcpy(id->bytes.data(), &number, sizeof number);
  groups[std::string(id->bytes.data(), id->bytes.size())] = std::make_shared<Group>();
  return success;
}

int ncclCommInitRankConfig(Comm** made, int ranks, UniqueId id, int rank, Config* config) {
  const std::lock_guard lock(control.mutex);
  const auto known = groups.find(std::string(id.bytes.data(), id.bytes.size()));
  if (known == groups.end()) return misuse("no such id", invalid_argument);
  if (config->size != sizeof(Config) || config->magic != 0xcafebeef || config->version < 21400 ||
      config->blocking != 0)
    return misuse("another configuration", invalid_argument);
  const std::shared_ptr<Group>& group = known->second;
  if (group->size == 0) group->size = ranks;
  if (group->size != ranks || rank < 0 || rank >= ranks || !group->joined.insert(rank).second)
    return misuse("rank " + std::to_string(rank) + " of " + std::to_string(ranks), invalid_argument);
  auto comm = std::make_shared<Comm>();
  comm->group = group;
  comm->rank = rank;
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
  *state = comm->error;
  if (comm->error != 0) return success;
  if (static_cast<int>(comm->group->joined.size()) < comm->group->size) *state = in_progress;
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
  changed.notify_all();
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
  const auto ranks = static_cast<std::size_t>(comm->group->size);
  return add(comm,
             {Call::Kind::gather, -1, static_cast<const std::byte*>(from), static_cast<std::byte*>(to), count,
              static_cast<MockStream*>(stream)},
             count * ranks, type);
}
}
