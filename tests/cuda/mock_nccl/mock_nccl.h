#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace lathe::test {

/// What tests set and see of the mock of NCCL: tests/cuda/mock_nccl/mock_nccl.cpp, a libnccl.so.2 between ranks that
/// are threads of one process or processes of one machine, on the streams of mock drivers. It checks what it is asked
/// for, and each rank's calls against those of the others. Each process has its own.
///
/// For processes, the environment sets it at the start: MOCK_NCCL_FAULT="RANK AFTER CODE", MOCK_NCCL_VERSION="22703".
struct MockNccl {
  /// A message that fails on its way: of the ranks of that number in their groups, what they put on streams as their
  /// group number `after`, counted from 0, and all that comes later, never moves.
  struct Fault {
    int rank = -1, after = 0;
    int code = 0;  ///< what the communicator's asynchronous error is from then on; 0: it just does not move
  };

  std::mutex mutex;  ///< of all the rest
  int version = 22703;
  Fault fault;
  std::vector<std::string> misuses;  ///< what was asked for and may not be
  std::uint64_t sent = 0;            ///< bytes, by all ranks of the process
  int gathers = 0, messages = 0;     ///< calls
  int alive = 0, aborted = 0;        ///< communicators
  int stuck = 0;                     ///< groups of calls that were ended by an abort

  /// As at the start; no communicator may be alive.
  void reset() {
    const std::lock_guard lock(mutex);
    fault = {};
    misuses.clear();
    sent = 0;
    gathers = messages = aborted = stuck = 0;
  }
};

}  // namespace lathe::test

/// Of the library, by dlsym.
extern "C" lathe::test::MockNccl* mock_nccl();
