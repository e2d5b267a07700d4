#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <new>
#include <vector>

#include "runtime/ranks/mpi/plugin_abi.h"

/// liblathe_mpi.so: see plugin_abi.h. Only this file includes MPI.

struct LatheMpiExchange {
  std::vector<MPI_Request> requests;  ///< MPI_REQUEST_NULL for completed ones
  std::vector<MPI_Status> statuses;
  std::vector<int> finished;
  std::vector<std::int64_t> received;  ///< expected size in bytes of each receive; -1 for sends
  int left = 0;
};

namespace {

/// A separate communicator, so that messages do not match other messages of the process.
MPI_Comm world = MPI_COMM_NULL;
bool has_begun = false;  ///< lathe_mpi_begin() was called
bool is_own = false;     ///< lathe_mpi_begin() initialized MPI

int start_mpi() {
  int is_started = 0, provided = 0;
  if (const int status = MPI_Initialized(&is_started)) return status;
  if (is_started) return MPI_Query_thread(&provided);
  // One thread makes all calls. FUNNELED requires it to be the thread that initializes MPI, which need not run
  // main().
  is_own = true;
  return MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
}

/// Returns an error if a received message is shorter than its buffer: then it belongs to another exchange.
int check_received(const LatheMpiExchange& exchange, int count) {
  for (int i = 0; i < count; ++i) {
    const auto wanted = exchange.received[exchange.finished[i]];
    if (wanted < 0) continue;
    int bytes = 0;
    if (const int status = MPI_Get_count(&exchange.statuses[i], MPI_BYTE, &bytes)) return status;
    if (bytes != wanted) return MPI_ERR_TRUNCATE;
  }
  return MPI_SUCCESS;
}

/// Returns the error of the first message that failed.
int first_error(const LatheMpiExchange& exchange, int count, int otherwise) {
  for (int i = 0; i < count; ++i)
    if (const int error = exchange.statuses[i].MPI_ERROR; error != MPI_SUCCESS && error != MPI_ERR_PENDING)
      return error;
  return otherwise;
}

}  // namespace

extern "C" {

int lathe_mpi_abi(void) { return lathe_mpi_abi_number; }

const char* lathe_mpi_library(void) {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  if (text[0] == 0 && MPI_Get_library_version(text, &length) != MPI_SUCCESS) std::snprintf(text, sizeof text, "MPI");
  return text;
}

void lathe_mpi_error_text(int status, char* text, int size) {
  char found[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(status, found, &length) != MPI_SUCCESS) std::snprintf(found, sizeof found, "error %d", status);
  std::snprintf(text, static_cast<std::size_t>(size), "%s", found);
}

int lathe_mpi_can_begin(void) {
  int is_over = 0;
  MPI_Finalized(&is_over);
  return !has_begun && is_over == 0 ? 1 : 0;
}

int lathe_mpi_begin(int* rank, int* size) {
  has_begun = true;
  if (const int status = start_mpi()) return status;
  if (const int status = MPI_Comm_dup(MPI_COMM_WORLD, &world)) return status;
  if (const int status = MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN)) return status;
  if (const int status = MPI_Comm_rank(world, rank)) return status;
  return MPI_Comm_size(world, size);
}

int lathe_mpi_end(void) {
  if (world != MPI_COMM_NULL)
    if (const int status = MPI_Comm_free(&world)) return status;
  if (!is_own) return MPI_SUCCESS;
  is_own = false;
  return MPI_Finalize();
}

int lathe_mpi_start(const LatheMpiMessage* sends, int send_count, const LatheMpiMessage* receives, int receive_count,
                    int tag, LatheMpiExchange** exchange) {
  const auto count = static_cast<std::size_t>(send_count + receive_count);
  auto made = std::unique_ptr<LatheMpiExchange>(new (std::nothrow) LatheMpiExchange);
  if (!made) return MPI_ERR_NO_MEM;
  try {
    made->requests.assign(count, MPI_REQUEST_NULL);
    made->statuses.resize(count);
    made->finished.resize(count);
    made->received.assign(count, -1);
  } catch (const std::bad_alloc&) {
    return MPI_ERR_NO_MEM;
  }
  int status = MPI_SUCCESS;
  // Receives are posted before sends, so that messages can be delivered directly.
  for (int i = 0; i < receive_count && status == MPI_SUCCESS; ++i) {
    const LatheMpiMessage& message = receives[i];
    const auto at = static_cast<std::size_t>(send_count + i);
    made->received[at] = message.bytes;
    status = MPI_Irecv(message.data, static_cast<int>(message.bytes), MPI_BYTE, message.peer, tag, world,
                       &made->requests[at]);
  }
  for (int i = 0; i < send_count && status == MPI_SUCCESS; ++i) {
    const LatheMpiMessage& message = sends[i];
    status = MPI_Isend(message.data, static_cast<int>(message.bytes), MPI_BYTE, message.peer, tag, world,
                       &made->requests[i]);
  }
  made->left = send_count + receive_count;
  if (status == MPI_SUCCESS)
    *exchange = made.release();
  else
    lathe_mpi_drop(made.release());
  return status;
}

int lathe_mpi_progress(LatheMpiExchange* exchange, int* moved, int* left) {
  int count = 0;
  const int status = MPI_Testsome(static_cast<int>(exchange->requests.size()), exchange->requests.data(), &count,
                                  exchange->finished.data(), exchange->statuses.data());
  if (count == MPI_UNDEFINED) count = 0;  // all requests have completed
  if (status == MPI_ERR_IN_STATUS) return first_error(*exchange, count, status);
  if (status != MPI_SUCCESS) return status;
  exchange->left -= count;
  *moved = count;
  *left = exchange->left;
  return check_received(*exchange, count);
}

int lathe_mpi_is_done(const LatheMpiExchange* exchange, int index) {
  return exchange->requests[index] == MPI_REQUEST_NULL ? 1 : 0;
}

void lathe_mpi_drop(LatheMpiExchange* exchange) {
  for (std::size_t i = 0; i < exchange->requests.size(); ++i) {
    MPI_Request& request = exchange->requests[i];
    if (request == MPI_REQUEST_NULL) continue;
    if (exchange->received[i] >= 0) MPI_Cancel(&request);
    MPI_Request_free(&request);
  }
  delete exchange;
}

void lathe_mpi_abort(int status) {
  // Not `world`: in MPICH, aborting another communicator waits for its processes, and one of them may be stopped.
  MPI_Abort(MPI_COMM_WORLD, status);
  _exit(status);
}
}
