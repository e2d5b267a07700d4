#pragma once

#include <cstdint>

/// The functions of liblathe_mpi.so, through which Lathe talks to an MPI that it is not linked with: plain C, so that
/// one Lathe goes with a plugin built for any MPI. Those that give a status give 0, or MPI's error code, which
/// lathe_mpi_error_text() explains.
extern "C" {

/// What both sides must agree on. It grows with every change of this file.
enum { lathe_mpi_abi_number = 1 };

/// Memory that goes to another process of MPI_COMM_WORLD, or is filled from there: at most 2^31 - 1 bytes.
struct LatheMpiMessage {
  void* data;
  std::int64_t bytes;
  int peer;
};

/// Messages under way.
struct LatheMpiExchange;

int lathe_mpi_abi(void);
/// "Open MPI v4.1.4, ...": good until the process ends.
const char* lathe_mpi_library(void);
/// Writes at most `size` bytes of text, the closing 0 included.
void lathe_mpi_error_text(int status, char* text, int size);

/// Whether lathe_mpi_begin() was not called before, and the process has not ended MPI.
int lathe_mpi_can_begin(void);
/// Starts MPI, where the process has not done so itself. From here to lathe_mpi_end() one thread makes all calls.
int lathe_mpi_begin(int* rank, int* size);
/// Ends what lathe_mpi_begin() started.
int lathe_mpi_end(void);

/// Starts to send and receive. Messages between two processes match in the order in which they were started, among
/// those of a tag. On an error nothing is under way.
int lathe_mpi_start(const LatheMpiMessage* sends, int send_count, const LatheMpiMessage* receives, int receive_count,
                    int tag, LatheMpiExchange** exchange);
/// Moves data. `moved`: messages that are done since the last call; `left`: those that are not.
int lathe_mpi_progress(LatheMpiExchange* exchange, int* moved, int* left);
/// Whether message number `index` is done, sends first.
int lathe_mpi_is_done(const LatheMpiExchange* exchange, int index);
/// Lets go of it; what is still under way is not waited for.
void lathe_mpi_drop(LatheMpiExchange* exchange);

/// Ends all processes, this one included.
void lathe_mpi_abort(int status);
}
