#pragma once

#include <cstdint>

/// The functions of liblathe_mpi.so. Through them Lathe uses an MPI that it is not linked to. They are plain C, so
/// that one build of Lathe works with plugins for any MPI. Functions that return a status return 0 or MPI's error
/// code, which lathe_mpi_error_text() describes.
extern "C" {

/// Version of this interface. Increase it with every change of this file.
enum { lathe_mpi_abi_number = 1 };

/// Memory that is sent to a process of MPI_COMM_WORLD, or filled by it: at most 2^31 - 1 bytes.
struct LatheMpiMessage {
  void* data;
  std::int64_t bytes;
  int peer;
};

/// Messages in flight.
struct LatheMpiExchange;

int lathe_mpi_abi(void);
/// Returns "Open MPI v4.1.4, ...". The string is valid until the process ends.
const char* lathe_mpi_library(void);
/// Writes at most `size` bytes of text, including the terminating 0.
void lathe_mpi_error_text(int status, char* text, int size);

/// Returns whether lathe_mpi_begin() has not been called yet and the process has not finalized MPI.
int lathe_mpi_can_begin(void);
/// Initializes MPI unless the process has done so. One thread must make all calls from here to lathe_mpi_end().
int lathe_mpi_begin(int* rank, int* size);
/// Finalizes MPI if lathe_mpi_begin() initialized it.
int lathe_mpi_end(void);

/// Starts sends and receives. Messages with the same tag between two processes match in the order in which they were
/// started. If it fails, no messages are in flight.
int lathe_mpi_start(const LatheMpiMessage* sends, int send_count, const LatheMpiMessage* receives, int receive_count,
                    int tag, LatheMpiExchange** exchange);
/// Makes progress. `moved` is the number of messages completed since the last call, `left` the number of pending
/// ones.
int lathe_mpi_progress(LatheMpiExchange* exchange, int* moved, int* left);
/// Returns whether message `index` has completed. Sends are counted before receives.
int lathe_mpi_is_done(const LatheMpiExchange* exchange, int index);
/// Frees an exchange without waiting for pending messages.
void lathe_mpi_drop(LatheMpiExchange* exchange);

/// Ends all processes, including this one.
void lathe_mpi_abort(int status);
}
