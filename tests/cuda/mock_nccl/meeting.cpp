#include "tests/cuda/mock_nccl/meeting.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

namespace lathe::test::mock {

/// The state that a rank publishes to the others.
struct Meeting::Place {
  std::atomic<bool> is_taken = false, has_joined = false;
  std::array<char, 64> device = {};
  std::atomic<std::uint64_t> posted = 0, taken = 0;  ///< numbers of groups: published, and read from all other ranks
  std::size_t calls = 0;                             ///< number of calls in the latest group
};

struct Meeting::Shared {
  std::atomic<int> ranks = 0;
  std::array<Place, most_ranks> places;
};

/// A call in a rank's area: all headers come first, then the bytes.
struct Meeting::Posted {
  Call::Kind kind;
  int peer;
  std::size_t bytes, at;
};

namespace {

constexpr std::size_t page = 4096;
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

std::mutex mutex;
std::map<std::string, int> made;  ///< descriptors by id, guarded by the mutex

std::string text(std::size_t number) { return std::to_string(number); }

}  // namespace

/// Size of the shared header plus the areas of `ranks` ranks.
std::size_t Meeting::bytes_of(int ranks) {
  return (sizeof(Shared) / page + 1) * page + static_cast<std::size_t>(ranks) * most_bytes;
}

std::string Meeting::make_id() {
  const int descriptor = memfd_create("mock_nccl", MFD_CLOEXEC);
  // Pages are allocated on first write.
  if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(bytes_of(most_ranks))) != 0)
    throw std::logic_error("there is no memory to share");
  const std::string id = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(descriptor);
  const std::lock_guard lock(mutex);
  made[id] = descriptor;
  return id;
}

Meeting::Meeting(const std::string& id, int rank, int ranks, const std::string& device)
    : id_(id), device_(device), rank_(rank), ranks_(ranks) {
  if (ranks < 1 || ranks > most_ranks || rank < 0 || rank >= ranks)
    throw std::logic_error("rank " + std::to_string(rank) + " of " + std::to_string(ranks));
  const int descriptor = open(id.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) throw std::logic_error("no such id");
  const std::size_t bytes = bytes_of(ranks);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  close(descriptor);
  if (memory == MAP_FAILED) throw std::logic_error("the shared memory cannot be mapped");
  shared_ = static_cast<Shared*>(memory);  // a zeroed Shared is valid
  int given = 0;
  const bool is_first = shared_->ranks.compare_exchange_strong(given, ranks);
  if ((!is_first && given != ranks) || place(rank).is_taken.exchange(true)) {
    munmap(memory, bytes);
    throw std::logic_error("rank " + std::to_string(rank) + " of " + std::to_string(ranks) +
                           " joins twice, or others are of " + std::to_string(given));
  }
  const std::size_t size = std::min(device.size(), place(rank).device.size() - 1);
  std::memcpy(place(rank).device.data(), device.data(), size);
  place(rank).has_joined = true;
}

Meeting::~Meeting() {
  munmap(shared_, bytes_of(ranks_));
  if (rank_ != 0) return;
  const std::lock_guard lock(mutex);
  if (const auto own = made.find(id_); own != made.end()) {
    close(own->second);
    made.erase(own);
  }
}

Meeting::Place& Meeting::place(int rank) const { return shared_->places.at(static_cast<std::size_t>(rank)); }

std::byte* Meeting::area(int rank) const { return reinterpret_cast<std::byte*>(shared_) + bytes_of(rank); }

std::vector<Meeting::Posted> Meeting::posted(int rank) const {
  std::vector<Posted> all(place(rank).calls);
  if (!all.empty()) std::memcpy(all.data(), area(rank), all.size() * sizeof(Posted));
  return all;
}

bool Meeting::has_all() const {
  return std::all_of(shared_->places.begin(), shared_->places.begin() + ranks_,
                     [](const Place& place) { return place.has_joined.load(); });
}

std::string Meeting::clash() const {
  for (int a = 0; a < ranks_; ++a)
    for (int b = a + 1; b < ranks_; ++b) {
      if (!place(a).has_joined || !place(b).has_joined || place(a).device[0] == 0) continue;
      if (place(a).device == place(b).device)
        return "ranks " + std::to_string(a) + " and " + std::to_string(b) + " are both on " + place(a).device.data();
    }
  return "";
}

bool Meeting::wait_for_all(const std::function<bool(const Place&)>& holds,
                           const std::function<bool()>& gives_up) const {
  for (int r = 0; r < ranks_; ++r)
    while (!holds(place(r))) {
      if (gives_up()) return false;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  return true;
}

bool Meeting::exchange(const std::vector<Call>& calls, std::uint64_t round, const std::function<bool()>& gives_up) {
  // Other ranks may still be reading the previous group from this rank's area.
  if (!wait_for_all([&](const Place& its) { return its.taken >= round; }, gives_up)) return false;
  post(calls);
  place(rank_).posted = round + 1;
  if (!wait_for_all([&](const Place& its) { return its.posted >= round + 1; }, gives_up)) return false;
  try {
    take(calls);
  } catch (...) {
    place(rank_).taken = round + 1;
    throw;
  }
  place(rank_).taken = round + 1;
  return true;
}

void Meeting::post(const std::vector<Call>& calls) {
  std::vector<Posted> all;
  std::size_t at = calls.size() * sizeof(Posted);
  for (const Call& call : calls) {
    const bool leaves = call.kind != Call::Kind::receive;
    if (leaves && at + call.bytes > most_bytes)
      throw std::logic_error("a rank sends more than " + text(most_bytes) + " bytes at once");
    if (leaves) std::memcpy(area(rank_) + at, call.from, call.bytes);
    all.push_back({call.kind, call.peer, call.bytes, at});
    if (leaves) at += call.bytes;
  }
  std::memcpy(area(rank_), all.data(), all.size() * sizeof(Posted));
  place(rank_).calls = all.size();
}

void Meeting::take(const std::vector<Call>& calls) const {
  for (int peer = 0; peer < ranks_; ++peer) {
    take_messages(calls, peer);
    take_gathers(calls, peer);
  }
}

void Meeting::take_messages(const std::vector<Call>& calls, int peer) const {
  std::vector<Posted> sends;
  for (const Posted& its : posted(peer))
    if (its.kind == Call::Kind::send && its.peer == rank_) sends.push_back(its);
  std::vector<const Call*> receives;
  for (const Call& call : calls)
    if (call.kind == Call::Kind::receive && call.peer == peer) receives.push_back(&call);
  if (sends.size() != receives.size())
    throw std::logic_error("rank " + std::to_string(peer) + " sends " + text(sends.size()) + " messages to rank " +
                           std::to_string(rank_) + ", which receives " + text(receives.size()));
  for (std::size_t i = 0; i < sends.size(); ++i) {
    if (sends[i].bytes != receives[i]->bytes)
      throw std::logic_error("a message of " + text(sends[i].bytes) + " bytes is received as " +
                             text(receives[i]->bytes));
    std::memcpy(receives[i]->to, area(peer) + sends[i].at, sends[i].bytes);
  }
}

void Meeting::take_gathers(const std::vector<Call>& calls, int peer) const {
  const auto gathers = [](const auto& all) {
    return std::ranges::count_if(all, [](const auto& one) { return one.kind == Call::Kind::gather; });
  };
  const std::vector<Posted> its = posted(peer);
  if (gathers(its) != gathers(calls) || (gathers(calls) > 0 && its.size() != calls.size()))
    throw std::logic_error("ranks ask for different calls at the same time");
  if (gathers(calls) == 0) return;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (its[i].bytes != calls[i].bytes) throw std::logic_error("ranks gather different numbers of bytes");
    std::memcpy(calls[i].to + calls[i].bytes * static_cast<std::size_t>(peer), area(peer) + its[i].at, its[i].bytes);
  }
}

}  // namespace lathe::test::mock
