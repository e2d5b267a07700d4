#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace lathe::test {

/// Settings and observations of the NCCL mock for tests. The mock (tests/cuda/mock_nccl/mock_nccl.cpp) is a
/// libnccl.so.2 for ranks that are threads of one process or processes of one machine, on the streams of mock
/// drivers. It validates its calls, and each rank's calls against those of the other ranks. Each process has its own
/// instance.
///
/// For processes, the environment sets it at start-up: MOCK_NCCL_FAULT="RANK AFTER CODE", MOCK_NCCL_VERSION="22703".
struct MockNccl {
  /// A lost message: for each rank with number `rank` in its group, the call group number `after`, counted from 0,
  /// and all later ones never transfer data.
  struct Fault {
    int rank = -1, after = 0;
    int code = 0;  ///< asynchronous error of the communicator from then on; 0: it only hangs
  };

  std::mutex mutex;  ///< guards all other members
  int version = 22703;
  Fault fault;
  std::vector<std::string> misuses;  ///< invalid calls
  std::uint64_t sent = 0;            ///< bytes sent by all ranks of the process
  int gathers = 0, messages = 0;     ///< call counts
  int alive = 0, aborted = 0;        ///< communicators
  int stuck = 0;                     ///< groups of calls that an abort ended

  /// Resets everything; no communicator may be alive.
  void reset() {
    const std::lock_guard lock(mutex);
    fault = {};
    misuses.clear();
    sent = 0;
    gathers = messages = aborted = stuck = 0;
  }
};

}  // namespace lathe::test

/// Looked up in the library with dlsym.
extern "C" lathe::test::MockNccl* mock_nccl();
