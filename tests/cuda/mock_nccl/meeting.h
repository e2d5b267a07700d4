#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/cuda/device/mock_stream.h"

namespace lathe::test::mock {

/// An NCCL call of one rank.
struct Call {
  enum class Kind { send, receive, gather };
  Kind kind;
  int peer;
  const std::byte* from;
  std::byte* to;
  std::size_t bytes;
  MockStream* stream;
};

/// Ranks that share one id: threads of one process, or processes of this machine. They share anonymous memory: the id
/// is the process that created it and its descriptor there, so nothing is left behind, however they end. There are no
/// locks that a process could die with: every word is written by one rank.
class Meeting {
 public:
  static constexpr int most_ranks = 16;
  static constexpr std::size_t most_bytes = std::size_t{64} << 20;  ///< maximum bytes that a rank enqueues at once

  /// Creates memory for a new meeting. The process keeps it until its rank 0 has left.
  static std::string make_id();

  /// Joins a meeting. `device` names the rank's device; "" if unknown. Throws std::logic_error for an unknown id, a
  /// rank count that differs from the other ranks', and a rank that is already taken.
  Meeting(const std::string& id, int rank, int ranks, const std::string& device);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  bool has_all() const;
  /// Returns "ranks 0 and 1 are both on ..." if two joined ranks use one device; else "".
  std::string clash() const;
  const std::string& device() const { return device_; }

  /// Executes the calls of this rank's group number `round`, counted from 0, together with the groups of that number
  /// of all other ranks. Returns false if it gives up waiting for them. Throws std::logic_error if the calls do not
  /// match.
  bool exchange(const std::vector<Call>& calls, std::uint64_t round, const std::function<bool()>& gives_up);

 private:
  struct Place;
  struct Shared;
  struct Posted;

  static std::size_t bytes_of(int ranks);
  Place& place(int rank) const;
  std::byte* area(int rank) const;
  std::vector<Posted> posted(int rank) const;
  bool wait_for_all(const std::function<bool(const Place&)>& holds, const std::function<bool()>& gives_up) const;
  void post(const std::vector<Call>& calls);
  void take(const std::vector<Call>& calls) const;
  void take_messages(const std::vector<Call>& calls, int peer) const;
  void take_gathers(const std::vector<Call>& calls, int peer) const;

  std::string id_, device_;
  int rank_, ranks_;
  Shared* shared_ = nullptr;
};

}  // namespace lathe::test::mock
