#include "runtime/ranks/mpi/mpi_communicator.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <thread>

#include "ir/support/error.h"
#include "runtime/ranks/mpi/mpi_library.h"

namespace lathe {

namespace {

using Clock = std::chrono::steady_clock;

/// The MPI session, shared by all groups of this process.
struct Session {
  explicit Session(const MpiOptions& options)
      : mpi(load_mpi_library(options.plugin)), most_bytes(std::max<std::int64_t>(1, options.most_bytes)) {
    if (mpi.can_begin() == 0)
      throw UserError("MPI has begun in this process before", "mpi_once",
                      "keep the Ranks of the first time: executables share them");
    mpi.check(mpi.begin(&rank, &size), "MPI cannot begin");
  }
  ~Session() { mpi.end(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  MpiLibrary mpi;
  std::int64_t most_bytes;
  int rank = 0, size = 0;  ///< among all processes
  std::atomic<bool> is_interrupted = false;
  int next_group = 1;  ///< greater than the numbers of all groups of this process so far
};

/// MPI requests of messages in flight, all sent or all received.
class UnderWay {
 public:
  UnderWay(const MpiLibrary& mpi, const std::vector<LatheMpiMessage>& sends,
           const std::vector<LatheMpiMessage>& receives, int tag)
      : mpi_(mpi) {
    mpi_.check(mpi_.start(sends.data(), static_cast<int>(sends.size()), receives.data(),
                          static_cast<int>(receives.size()), tag, &exchange_),
               "messages cannot be sent");
    for (const auto* messages : {&sends, &receives})
      for (const LatheMpiMessage& message : *messages) peers_.push_back(message.peer);
    left = static_cast<int>(peers_.size());
  }
  ~UnderWay() { mpi_.drop(exchange_); }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

  int left = 0;
  /// Returns whether a message has completed since the last call.
  bool progress() {
    int moved = 0;
    if (left > 0) mpi_.check(mpi_.progress(exchange_, &moved, &left), "an exchange failed");
    return moved > 0;
  }
  /// Returns the processes whose messages have not completed.
  std::vector<int> waited_for() const {
    std::vector<int> peers;
    for (std::size_t i = 0; i < peers_.size(); ++i)
      if (mpi_.is_done(exchange_, static_cast<int>(i)) == 0) peers.push_back(peers_[i]);
    return peers;
  }

 private:
  const MpiLibrary& mpi_;
  LatheMpiExchange* exchange_ = nullptr;
  std::vector<int> peers_;  ///< by message
};

/// Messages are split into pieces of at least this size, and into at most this many pieces. MPI implementations that
/// move a part of each message per poll transfer pieces concurrently, and each completed piece shows that the
/// exchange makes progress.
/// A message is split into up to most_pieces chunks of at least least_piece bytes.
constexpr std::int64_t least_piece = 1 << 20, most_pieces = 64;

/// MPI makes progress only when it is polled. This polls without sleeping at first, and then sleeps for longer the
/// longer nothing has moved. The CPU is needed by compute threads and, if there are more processes than CPUs, by the
/// processes that this one waits for. Yielding instead of sleeping would get too little CPU time on a busy machine.
void rest(Clock::duration waited) {
  using namespace std::chrono_literals;
  if (waited > 50us) std::this_thread::sleep_for(std::clamp<Clock::duration>(waited / 4, 20us, 500us));
}

class MpiCommunicator final : public Communicator {
 public:
  /// `members` are the processes of the group in rank order. `group` is its number: the same on all members, and
  /// different from other groups that share two of them.
  MpiCommunicator(std::shared_ptr<Session> session, std::vector<int> members, int group)
      : session_(std::move(session)), members_(std::move(members)), group_(group) {
    rank_ = static_cast<int>(std::ranges::find(members_, session_->rank) - members_.begin());
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  std::string engine() const override { return session_->mpi.name(); }

  void exchange_in_rounds(std::span<const Message> sends, std::span<const std::vector<Message>> rounds,
                          double timeout, FunctionRef<void(std::size_t)> take) override {
    UnderWay out(session_->mpi, pieces(sends), {}, group_);
    std::deque<UnderWay> in;  // at most two rounds; the first one is round `taken`
    std::size_t taken = 0;
    auto last = Clock::now();
    for (;;) {
      while (in.size() < 2 && taken + in.size() < rounds.size())
        in.emplace_back(session_->mpi, std::vector<LatheMpiMessage>(), pieces(rounds[taken + in.size()]), group_);
      bool has_moved = out.progress();
      for (UnderWay& round : in) has_moved |= round.progress();
      if (!in.empty() && in.front().left == 0) {
        in.pop_front();
        take(taken++);
        has_moved = true;
      }
      if (in.empty() && taken == rounds.size() && out.left == 0) return;
      check();
      const auto now = Clock::now();
      if (has_moved) last = now;
      if (timeout > 0 && std::chrono::duration<double>(now - last).count() > timeout)
        throw StalledExchange(waited_for(out, in));
      rest(now - last);
    }
  }

  std::unique_ptr<Communicator> split(int color, double timeout) override {
    struct Asked {
      int color, next_group;
    };
    std::vector<Asked> all(members_.size(), {color, session_->next_group});
    Asked own = all.front();
    std::vector<Message> sends, receives;
    for (int r = 0; r < size(); ++r) {
      if (r == rank_) continue;
      sends.push_back({r, reinterpret_cast<std::byte*>(&own), sizeof own});
      receives.push_back({r, reinterpret_cast<std::byte*>(&all[r]), sizeof own});
    }
    exchange(sends, std::move(receives), timeout);
    std::vector<int> members;
    int group = 0;
    for (std::size_t r = 0; r < all.size(); ++r) {
      group = std::max(group, all[r].next_group);
      if (all[r].color == color) members.push_back(members_[r]);
    }
    session_->next_group = group + 1;
    return std::make_unique<MpiCommunicator>(session_, std::move(members), group);
  }

  void check() override {
    if (session_->is_interrupted) throw UserError("exchanges of this rank were interrupted", "rank_failed", "");
  }

  void interrupt() noexcept override { session_->is_interrupted = true; }

  void abort(const std::string& why) noexcept override {
    // Report an error that all ranks have only once: rank 0 ends the others while they wait here.
    if (session_->rank != 0) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    const std::string line = why + "\n";
    // If standard error is closed, the exit status still reports the failure.
    const bool is_told = ::write(STDERR_FILENO, line.data(), line.size()) >= 0;
    // MPICH's mpiexec only forwards output that it has read before the abort.
    if (is_told) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    session_->mpi.abort(1);
  }

 private:
  std::vector<LatheMpiMessage> pieces(std::span<const Message> messages) const {
    std::vector<LatheMpiMessage> cut;
    for (const Message& message : messages) {
      const auto bytes = static_cast<std::int64_t>(message.bytes);
      const std::int64_t most = std::min(session_->most_bytes, std::max(bytes / most_pieces, least_piece));
      const int peer = members_[message.peer];
      std::int64_t begin = 0;
      do {
        const std::int64_t size = std::min(bytes - begin, most);
        cut.push_back({message.data + begin, size, peer});
        begin += size;
      } while (begin < bytes);
    }
    return cut;
  }

  /// Returns the ranks of the group that have not sent or received a message.
  std::vector<int> waited_for(const UnderWay& sent, const std::deque<UnderWay>& received) const {
    std::vector<int> peers;
    const auto add = [&](const UnderWay& messages) {
      for (const int process : messages.waited_for())
        peers.push_back(static_cast<int>(std::ranges::find(members_, process) - members_.begin()));
    };
    add(sent);
    for (const UnderWay& messages : received) add(messages);
    std::ranges::sort(peers);
    peers.erase(std::ranges::unique(peers).begin(), peers.end());
    return peers;
  }

  std::shared_ptr<Session> session_;
  std::vector<int> members_;
  int group_, rank_;
};

}  // namespace

MakeCommunicator mpi_processes(const MpiOptions& options) {
  return [options]() -> std::unique_ptr<Communicator> {
    auto session = std::make_shared<Session>(options);
    std::vector<int> all(static_cast<std::size_t>(session->size));
    for (int r = 0; r < session->size; ++r) all[r] = r;
    return std::make_unique<MpiCommunicator>(std::move(session), std::move(all), 0);
  };
}

}  // namespace lathe
