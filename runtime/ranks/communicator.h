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

/// Memory of this process that goes to another one of a group, or is filled from there.
struct Message {
  int peer;
  std::byte* data;
  std::size_t bytes;
};

/// No message has come or gone for as long as an exchange may wait.
struct StalledExchange : std::runtime_error {
  explicit StalledExchange(std::vector<int> waiting_for);
  std::vector<int> peers;  ///< of the group, that have not sent or taken their messages
};

/// A group of processes, the ranks, that exchange memory. Who talks to the others is one thread: but for interrupt(),
/// all functions are called from the thread that made it.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// What carries the messages: "Open MPI v4.1.4".
  virtual std::string engine() const = 0;

  /// Sends everything, receives round after round, and returns when all is done. `take(r)` uses what has come in
  /// round r: then memory that it came to is free for round r + 2, while messages of round r + 1 may be coming.
  /// Messages between two ranks match in their order and have equal sizes; to oneself none are sent. Throws
  /// StalledExchange when no message has come or gone for `patience` seconds, and UserError [rank_failed] when a rank
  /// has ended all, or interrupt() was called.
  virtual void exchange_in_rounds(std::span<const Message> sends, std::span<const std::vector<Message>> rounds,
                                  double patience, FunctionRef<void(std::size_t round)> take) = 0;
  /// The same in one round.
  void exchange(std::span<const Message> sends, std::vector<Message> receives, double patience);

  /// The group of the ranks that give the same color, in the order of their ranks here. All ranks call it. Throws as
  /// exchange() does.
  virtual std::unique_ptr<Communicator> split(int color, double patience) = 0;

  /// For who waits for something else than messages: throws UserError [rank_failed] as exchange() does.
  virtual void check() = 0;

  /// From any thread: exchanges of this process, those under way too, and of its other groups, end with
  /// [rank_failed].
  virtual void interrupt() noexcept = 0;
  /// Ends all ranks, whatever they do: each learns `why`, or is killed, with `why` on this one's standard error.
  virtual void abort(const std::string& why) noexcept = 0;
};

/// The ranks of a group but this one.
std::vector<int> others_of(const Communicator& group);

/// What makes a process's communicator, on the thread that is to use it.
using MakeCommunicator = std::function<std::unique_ptr<Communicator>()>;

/// The text that each rank gives, by rank. All ranks call it.
std::vector<std::string> gather_texts(Communicator& group, const std::string& own, double patience);

}  // namespace lathe
