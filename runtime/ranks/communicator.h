#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/threads/function_ref.h"

namespace lathe {

/// Memory of this process that is sent to a peer of a group, or filled by it.
struct Message {
  int peer;
  std::byte* data;
  std::size_t bytes;
};

/// No message was sent or received within the timeout of an exchange.
struct StalledExchange : std::runtime_error {
  explicit StalledExchange(std::vector<int> waiting_for);
  std::vector<int> peers;  ///< ranks of the group that have not sent or received their messages
};

/// A group of processes, called ranks, that exchange memory. All functions except interrupt() must be called from the
/// thread that created the communicator.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Returns the name of the transport: "Open MPI v4.1.4".
  virtual std::string engine() const = 0;

  /// Sends all messages, receives one round after another, and returns when everything is done. Calls `take(r)` when
  /// round r has arrived. After that, its memory is free for round r + 2, while messages of round r + 1 may be
  /// arriving. Messages between two ranks match in order and must have equal sizes; a rank sends none to itself.
  /// Throws StalledExchange if no message was sent or received for `timeout` seconds. Throws UserError [rank_failed]
  /// if a rank has aborted all ranks or interrupt() was called.
  virtual void exchange_in_rounds(std::span<const Message> sends, std::span<const std::vector<Message>> rounds,
                                  double timeout, FunctionRef<void(std::size_t round)> take) = 0;
  /// Exchanges messages in one round.
  void exchange(std::span<const Message> sends, std::vector<Message> receives, double timeout);

  /// Returns the group of the ranks with the same color, in the order of their ranks in this group. Must be called by
  /// all ranks. Throws as exchange() does.
  virtual std::unique_ptr<Communicator> split(int color, double timeout) = 0;

  /// Throws UserError [rank_failed] as exchange() does. For loops that wait for something other than messages.
  virtual void check() = 0;

  /// Makes exchanges of this process, current ones included and in all groups, throw [rank_failed]. May be called
  /// from any thread.
  virtual void interrupt() noexcept = 0;
  /// Ends all ranks. Each other rank throws an error with `why`, or is killed and `why` is written to this rank's
  /// standard error.
  virtual void abort(const std::string& why) noexcept = 0;
};

/// Returns the ranks of a group except this one.
std::vector<int> others_of(const Communicator& group);

/// Creates a process's communicator. Must be called on the thread that uses the communicator.
using MakeCommunicator = std::function<std::unique_ptr<Communicator>()>;

/// Returns the text of each rank, by rank. Must be called by all ranks.
std::vector<std::string> gather_texts(Communicator& group, const std::string& own, double timeout);

}  // namespace lathe
