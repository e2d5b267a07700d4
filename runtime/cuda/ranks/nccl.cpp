#include "runtime/cuda/ranks/nccl.h"

#include <dlfcn.h>
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <array>
#include <cstring>

#include "codegen/cuda/library_candidates.h"
#include "ir/support/error.h"

namespace lathe::cuda {

namespace {

// Constants of nccl.h, so that it need not be installed. Results are ints; 0 is success.
constexpr int in_progress = 7;
constexpr int type_of_bytes = 1;  // ncclUint8
constexpr int least_version = 21400;

struct UniqueId {
  std::array<char, 128> bytes;
};

/// ncclConfig_t of NCCL 2.14, the first version with it. Newer versions accept it by its size.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = least_version;
  int blocking = 0;
};

struct NcclFunctions {
  int (*version)(int*);
  const char* (*error_string)(int);
  const char* (*last_error)(Nccl::Comm);
  int (*unique_id)(UniqueId*);
  int (*init_rank)(Nccl::Comm*, int, UniqueId, int, Config*);
  int (*async_error)(Nccl::Comm, int*);
  int (*finalize)(Nccl::Comm);
  int (*destroy)(Nccl::Comm);
  int (*abort)(Nccl::Comm);
  int (*group_start)();
  int (*group_end)();
  int (*send)(const void*, std::size_t, int, int, Nccl::Comm, void*);
  int (*receive)(void*, std::size_t, int, int, Nccl::Comm, void*);
  int (*all_gather)(const void*, void*, std::size_t, int, Nccl::Comm, void*);
};

constexpr const char* names[] = {"libnccl.so.2", "libnccl.so"};

std::string version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

struct Nccl::Library {
  void* handle = nullptr;
  NcclFunctions call = {};
  std::string name;

  Library() = default;
  ~Library() {
    if (handle) dlclose(handle);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  template <class F>
  bool find(const char* symbol, F& function) const {
    function = reinterpret_cast<F>(dlsym(handle, symbol));
    return function != nullptr;
  }

  /// Returns the name of the first missing function; null if all exist.
  const char* find_all() {
    const auto missing = [&](const char* symbol, auto& function) {
      return find(symbol, function) ? nullptr : symbol;
    };
    for (const char* lacks :
         {missing("ncclGetVersion", call.version), missing("ncclGetErrorString", call.error_string),
          missing("ncclGetLastError", call.last_error), missing("ncclGetUniqueId", call.unique_id),
          missing("ncclCommInitRankConfig", call.init_rank), missing("ncclCommGetAsyncError", call.async_error),
          missing("ncclCommFinalize", call.finalize), missing("ncclCommDestroy", call.destroy),
          missing("ncclCommAbort", call.abort), missing("ncclGroupStart", call.group_start),
          missing("ncclGroupEnd", call.group_end), missing("ncclSend", call.send), missing("ncclRecv", call.receive),
          missing("ncclAllGather", call.all_gather)})
      if (lacks) return lacks;
    return nullptr;
  }

  void check(std::string_view what, int result, Comm comm = nullptr) const {
    if (result == 0 || result == in_progress) return;
    const char* const more = call.last_error(comm);
    throw UserError(
        fmt::format("{}: {}{}{}", what, call.error_string(result), more && *more ? ": " : "", more ? more : ""),
        "nccl_failed", "NCCL_DEBUG=WARN in the environment makes NCCL say more");
  }
};

std::vector<std::string> nccl_candidates(const std::vector<std::filesystem::path>& folders) {
  return library_candidates(names, folders);
}

Nccl::Nccl(const std::vector<std::string>& candidates) : library_(std::make_unique<Library>()) {
  constexpr std::string_view hint =
      "install NCCL 2.14 or newer (Debian and Ubuntu: libnccl2 of NVIDIA; pip: nvidia-nccl-cu12 or -cu13) where the "
      "dynamic linker finds it, or set CUDA_HOME to the folder above its lib";
  for (const std::string& candidate : candidates) {
    // Never unload the library, because its threads may outlive the last communicator.
    library_->handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library_->handle) continue;
    library_->name = candidate;
    const char* const lacks = library_->find_all();
    if (!lacks) return;
    int version = 0;
    const bool is_nccl = library_->call.version && library_->call.version(&version) == 0;
    throw UserError(
        fmt::format("{}{} has no {}", candidate, is_nccl ? ", NCCL " + version_text(version) + "," : "", lacks),
        "nccl_missing", hint);
  }
  throw UserError(fmt::format("NCCL, by which the GPUs of several processes exchange memory, is not on this machine; "
                              "tried {}",
                              fmt::join(candidates, ", ")),
                  "nccl_missing", hint);
}

Nccl::~Nccl() = default;

std::string Nccl::version() const {
  int version = 0;
  library_->check("ncclGetVersion", library_->call.version(&version));
  return version_text(version);
}

const std::string& Nccl::library() const { return library_->name; }

std::string Nccl::make_id() const {
  UniqueId id = {};
  library_->check("ncclGetUniqueId", library_->call.unique_id(&id));
  return {id.bytes.data(), id.bytes.size()};
}

Nccl::Comm Nccl::join(const std::string& id, int rank, int ranks) const {
  UniqueId given = {};
  LATHE_ASSERT(id.size() == given.bytes.size());
  std::memcpy(given.bytes.data(), id.data(), id.size());
  Config config;
  Comm comm = nullptr;
  library_->check("ncclCommInitRankConfig", library_->call.init_rank(&comm, ranks, given, rank, &config));
  return comm;
}

bool Nccl::is_ready(Comm comm) const {
  int state = 0;
  library_->check("ncclCommGetAsyncError", library_->call.async_error(comm, &state), comm);
  library_->check("between GPUs", state, comm);
  return state != in_progress;
}

void Nccl::finalize(Comm comm) const { library_->check("ncclCommFinalize", library_->call.finalize(comm), comm); }
void Nccl::destroy(Comm comm) const noexcept { library_->call.destroy(comm); }
void Nccl::abort(Comm comm) const noexcept { library_->call.abort(comm); }

void Nccl::begin_group() const { library_->check("ncclGroupStart", library_->call.group_start()); }
void Nccl::end_group() const { library_->check("ncclGroupEnd", library_->call.group_end()); }

void Nccl::send(Comm comm, int peer, const void* from, std::size_t bytes, Driver::Handle stream) const {
  library_->check("ncclSend", library_->call.send(from, bytes, type_of_bytes, peer, comm, stream), comm);
}
void Nccl::receive(Comm comm, int peer, void* to, std::size_t bytes, Driver::Handle stream) const {
  library_->check("ncclRecv", library_->call.receive(to, bytes, type_of_bytes, peer, comm, stream), comm);
}
void Nccl::all_gather(Comm comm, const void* from, void* to, std::size_t bytes, Driver::Handle stream) const {
  library_->check("ncclAllGather", library_->call.all_gather(from, to, bytes, type_of_bytes, comm, stream), comm);
}

}  // namespace lathe::cuda
