#include "runtime/ranks/thread_communicator.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "ir/support/error.h"

namespace lathe {

namespace {

using Clock = std::chrono::steady_clock;

/// State shared by all ranks of a process.
struct Room {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<std::string> failure;  ///< set when a rank has ended all

  /// Ends all ranks. Only the first call sets the reason.
  void end_all(const std::string& why) {
    const std::lock_guard lock(mutex);
    if (!failure) failure = why;
    changed.notify_all();
  }

  /// A sent message that was not received yet. Its memory belongs to the sender, which waits for `taken`.
  struct Sent {
    const std::byte* data;
    std::size_t bytes;
    char* taken;
  };
  /// By group, sender and receiver. Ranks are those of the group.
  std::map<std::tuple<int, int, int>, std::deque<Sent>> sent;
  /// State of a split by the group that is split: the colors of its ranks, and the new groups.
  struct Split {
    std::map<int, int> colors;  ///< by rank
    int first_group = 0, left = 0;
  };
  std::map<int, Split> splits;
  int groups = 1;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<Room> room, std::shared_ptr<std::atomic<bool>> interrupted, int group, int rank,
                     int size)
      : room_(std::move(room)), interrupted_(std::move(interrupted)), group_(group), rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string engine() const override { return "threads of one process"; }

  void exchange_in_rounds(std::span<const Message> sends, std::span<const std::vector<Message>> rounds,
                          double timeout, FunctionRef<void(std::size_t)> take) override {
    std::vector<char> taken(sends.size());
    std::unique_lock lock(room_->mutex);
    try {
      for (std::size_t i = 0; i < sends.size(); ++i)
        queue(rank_, sends[i].peer).push_back({sends[i].data, sends[i].bytes, &taken[i]});
      room_->changed.notify_all();
      for (std::size_t r = 0; r < rounds.size(); ++r) {
        receive_all(lock, rounds[r], timeout);
        lock.unlock();
        take(r);
        lock.lock();
      }
      wait(
          lock, timeout, [&] { return std::ranges::all_of(taken, [](char t) { return t != 0; }); },
          [&] {
            std::vector<int> peers;
            for (std::size_t i = 0; i < sends.size(); ++i)
              if (!taken[i]) peers.push_back(sends[i].peer);
            return peers;
          });
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      for (const Message& message : sends) queue(rank_, message.peer).clear();
      throw;
    }
  }

  std::unique_ptr<Communicator> split(int color, double timeout) override {
    std::unique_lock lock(room_->mutex);
    const auto none = [] { return std::vector<int>(); };
    wait(lock, timeout, [&] { return room_->splits[group_].left == 0; }, none);  // all have left the last split
    Room::Split& split = room_->splits[group_];
    split.colors[rank_] = color;
    if (static_cast<int>(split.colors.size()) == size_) {
      split.first_group = room_->groups;
      room_->groups += size_;  // at most one group per rank
      split.left = size_;
      room_->changed.notify_all();
    }
    wait(
        lock, timeout, [&] { return split.left > 0; },
        [&] {
          std::vector<int> peers;
          for (int r = 0; r < size_; ++r)
            if (!split.colors.contains(r)) peers.push_back(r);
          return peers;
        });
    int rank = 0, size = 0, leader = -1;
    for (const auto& [other, its] : split.colors) {
      if (its != color) continue;
      if (leader < 0) leader = other;
      rank += other < rank_ ? 1 : 0;
      ++size;
    }
    const int group = split.first_group + leader;
    if (--split.left == 0) room_->splits.erase(group_);
    room_->changed.notify_all();
    return std::make_unique<ThreadCommunicator>(room_, interrupted_, group, rank, size);
  }

  void check() override {
    const std::lock_guard lock(room_->mutex);
    throw_if_ended();
  }

  void interrupt() noexcept override {
    const std::lock_guard lock(room_->mutex);
    *interrupted_ = true;
    room_->changed.notify_all();
  }

  void abort(const std::string& why) noexcept override { room_->end_all(why); }

 private:
  std::deque<Room::Sent>& queue(int from, int to) { return room_->sent[{group_, from, to}]; }

  void receive_all(std::unique_lock<std::mutex>& lock, std::span<const Message> receives, double timeout) {
    for (const Message& wanted : receives) {
      std::deque<Room::Sent>& from = queue(wanted.peer, rank_);
      wait(lock, timeout, [&] { return !from.empty(); }, [&] { return std::vector{wanted.peer}; });
      const Room::Sent message = from.front();
      LATHE_ASSERT(message.bytes == wanted.bytes);
      if (message.bytes > 0) std::memcpy(wanted.data, message.data, message.bytes);
      from.pop_front();
      *message.taken = 1;
      room_->changed.notify_all();
    }
  }

  template <class Done, class Peers>
  void wait(std::unique_lock<std::mutex>& lock, double timeout, const Done& done, const Peers& peers) {
    const auto stops = [&] { return done() || room_->failure || *interrupted_; };
    if (timeout > 0) {
      if (!room_->changed.wait_for(lock, std::chrono::duration<double>(timeout), stops))
        throw StalledExchange(peers());
    } else {
      room_->changed.wait(lock, stops);
    }
    if (done()) return;  // no error if this rank is done, even if another rank has failed
    throw_if_ended();
  }

  /// Requires the room's lock.
  void throw_if_ended() const {
    if (room_->failure) throw UserError(*room_->failure, "rank_failed", "all ranks end with it");
    if (*interrupted_) throw UserError("exchanges of this rank were interrupted", "rank_failed", "");
  }

  std::shared_ptr<Room> room_;
  std::shared_ptr<std::atomic<bool>> interrupted_;  ///< shared by all groups of this rank
  int group_, rank_, size_;
};

/// Returns whether a rank failed because another one did.
bool is_of_another(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const UserError& failure) {
    return failure.label() == "rank_failed";
  } catch (...) {
    return false;
  }
}

}  // namespace

void run_ranks(int ranks, const std::function<void(int rank, const MakeCommunicator&)>& body) {
  const auto room = std::make_shared<Room>();
  std::mutex mutex;
  std::vector<std::exception_ptr> errors;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank, [&]() -> std::unique_ptr<Communicator> {
          return std::make_unique<ThreadCommunicator>(room, std::make_shared<std::atomic<bool>>(false), 0, rank,
                                                      ranks);
        });
      } catch (const std::exception& error) {
        room->end_all(fmt::format("rank {} of {} failed: {}", rank, ranks, error.what()));
        const std::lock_guard lock(mutex);
        errors.push_back(std::current_exception());
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (errors.empty()) return;
  const auto own = std::ranges::find_if(errors, [](const auto& error) { return !is_of_another(error); });
  std::rethrow_exception(own == errors.end() ? errors.front() : *own);
}

}  // namespace lathe
