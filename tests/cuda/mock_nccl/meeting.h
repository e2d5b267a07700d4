#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/cuda/device/mock_stream.h"

namespace lathe::test::mock {

/// What a rank asks of NCCL.
struct Call {
  enum class Kind { send, receive, gather };
  Kind kind;
  int peer;
  const std::byte* from;
  std::byte* to;
  std::size_t bytes;
  MockStream* stream;
};

/// Ranks that found each other by one id: threads of one process, or processes of this machine. They share memory
/// that has no name: the id is the process that made it and its descriptor there. So nothing stays behind, however
/// they end. Nobody holds a lock that a process could die with: every word is written by one rank.
class Meeting {
 public:
  static constexpr int most_ranks = 16;
  static constexpr std::size_t most_bytes = std::size_t{64} << 20;  ///< that a rank puts on its stream at once

  /// Memory for a new meeting; the process keeps it until its rank 0 has left.
  static std::string make_id();

  /// Joins. `device` names what the rank computes on; "" where it is not known. Throws std::logic_error for an id
  /// that nobody has, another number of ranks than others gave, and a rank that is there.
  Meeting(const std::string& id, int rank, int ranks, const std::string& device);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  bool has_all() const;
  /// Of the ranks that have joined, two with one device: "ranks 0 and 1 are both on ..."; else "".
  std::string clash() const;
  const std::string& device() const { return device_; }

  /// Carries out what this rank asks for as its group number `round`, counted from 0, with the groups of that number
  /// of all others. False where it gives up waiting for them. Throws std::logic_error where calls do not match.
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
