#include <dlfcn.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "ir/support/error.h"
#include "tests/cuda/device/mock_driver.h"
#include "tests/cuda/mock_cuda/cubin.h"

/// A libcuda.so.1 with mock GPUs: the functions of cuda.h that Lathe calls. It runs kernels compiled by the NVRTC
/// mock. Environment variables: MOCK_CUDA_GPUS, the number of GPUs (1), of which a process sees those in
/// CUDA_VISIBLE_DEVICES; MOCK_CUDA_BYTES, memory per GPU (1 GiB); MOCK_CUDA_ORDER=early or late, when streams run;
/// MOCK_CUDA_LOG, a file that gets a line per launch: the kernel, its blocks, threads and bytes of shared memory,
/// then its arguments of 8 bytes in hexadecimal digits, and the number of tensor maps. Using an object of one GPU
/// while another one is current is an error.
namespace lathe::test::mock {

using Handle = cuda::Driver::Handle;
using Pointer = cuda::Driver::Pointer;

constexpr int success = 0, out_of_memory = 2, no_device = 100, invalid_device = 101, invalid_context = 201,
              invalid_handle = 400, not_ready = 600, launch_failed = 719, unknown = 999;

/// A kernel of a loaded library.
struct Kernel {
  int words = 0, maps = 0;
  int (*launch)(void** arguments, const long long* grid, const int* block, unsigned long long seed,
                int is_resident) = nullptr;
};

class Library {
 public:
  explicit Library(std::string_view bytes) : memory_(memfd_create("mock_cubin", MFD_CLOEXEC)) {
    if (write(memory_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      throw std::logic_error("a cubin does not fit");
    // The loader identifies libraries by name, so this descriptor stays open as long as the library.
    library_ = dlopen(("/proc/self/fd/" + std::to_string(memory_)).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library_) throw std::logic_error(dlerror());
  }
  ~Library() {
    if (library_) dlclose(library_);
    close(memory_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  Kernel kernel() const {
    return {.words = *static_cast<const int*>(dlsym(library_, "shim_words")),
            .maps = *static_cast<const int*>(dlsym(library_, "shim_maps")),
            .launch = reinterpret_cast<decltype(Kernel::launch)>(dlsym(library_, "shim_launch"))};
  }

 private:
  int memory_;
  void* library_ = nullptr;
};

std::FILE* opened(const char* path) { return path ? std::fopen(path, "w") : nullptr; }

/// The file of MOCK_CUDA_LOG, or of the last mock_cuda_log(); null: launches are not logged.
std::FILE*& log_file() {
  static std::FILE* file = opened(std::getenv("MOCK_CUDA_LOG"));
  return file;
}

struct Gpu {
  MockDriver driver;
  std::map<Handle, std::unique_ptr<Library>> modules;
  std::map<Handle, Kernel> functions;

  /// Returns a stream, or the default one for null.
  Handle stream(Handle given) {
    if (given) return given;
    if (!default_stream_) default_stream_ = driver.create_stream();
    return default_stream_;
  }
  bool is_device_memory(Pointer at) const {
    try {
      return driver.bytes_from(at) > 0;
    } catch (const std::logic_error&) {
      return false;
    }
  }
  void copy(Pointer to, Pointer from, std::size_t bytes, Handle on) {
    const Handle its = stream(on);
    if (is_device_memory(to) && is_device_memory(from)) return driver.copy_on_device(to, from, bytes, its);
    if (is_device_memory(to)) return driver.copy_to_device(to, reinterpret_cast<const void*>(from), bytes, its);
    driver.copy_to_host(reinterpret_cast<void*>(to), from, bytes, its);
  }

  /// Enqueues a launch with the kernel's arguments, as the driver's functions get them.
  void put(cuda::Driver::Launch l, void** arguments) {
    const Kernel& kernel = functions.at(l.function);
    std::vector<cuda::Driver::TensorMap> maps;
    for (int i = 0; i < kernel.maps; ++i)
      maps.push_back(*static_cast<const cuda::Driver::TensorMap*>(arguments[kernel.words + i]));
    l.stream = stream(l.stream);
    l.arguments = {arguments, static_cast<std::size_t>(kernel.words)};
    l.maps = maps;
    driver.launch(l);
  }

  void launch(const std::string& name, const cuda::Driver::Launch& l) {
    const Kernel& kernel = functions.at(l.function);
    log(name, l);
    std::vector<void*> arguments(l.arguments.begin(), l.arguments.end());
    for (cuda::Driver::TensorMap& map : l.maps) arguments.push_back(&map);
    const long long grid[] = {l.grid[0], l.grid[1], l.grid[2]};
    if (kernel.launch(arguments.data(), grid, l.block.data(), 1, l.is_cooperative) != 0)
      throw std::logic_error("threads of a block finish while others wait at a barrier");
  }

 private:
  static void log(const std::string& name, const cuda::Driver::Launch& l) {
    std::FILE* const file = log_file();
    if (!file) return;
    fmt::print(file, "{} {} {} {} {}", name, fmt::join(l.grid, " "), fmt::join(l.block, " "), l.shared_bytes,
               l.arguments.size());
    for (const void* argument : l.arguments) fmt::print(file, " {:x}", *static_cast<const std::uint64_t*>(argument));
    fmt::print(file, " {}\n", l.maps.size());
    std::fflush(file);
  }

  Handle default_stream_ = nullptr;
};

namespace {

std::string setting(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value ? value : otherwise;
}

std::vector<std::unique_ptr<Gpu>> visible_gpus() {
  const int count = std::stoi(setting("MOCK_CUDA_GPUS", "1"));
  std::string all;
  for (int i = 0; i < count; ++i) all += std::to_string(i) + ",";
  std::vector<std::unique_ptr<Gpu>> gpus;
  std::istringstream numbers(setting("CUDA_VISIBLE_DEVICES", all));
  for (std::string number; std::getline(numbers, number, ',');) {
    const int i = std::stoi(number);
    if (i < 0 || i >= count) break;  // like the driver: ignores the rest
    auto gpu = std::make_unique<Gpu>();
    gpu->driver.device_ids = {fmt::format("{:032x}", 0xabc0 + i)};
    gpu->driver.resident_blocks = 132;
    gpu->driver.memory_bytes = std::stoull(setting("MOCK_CUDA_BYTES", "1073741824"));
    gpu->driver.order =
        setting("MOCK_CUDA_ORDER", "late") == "early" ? MockDriver::Order::early : MockDriver::Order::late;
    gpu->driver.on_launch = [its = gpu.get()](const std::string& name, const cuda::Driver::Launch& l) {
      its->launch(name, l);
    };
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

std::vector<std::unique_ptr<Gpu>>& gpus() {
  static std::vector<std::unique_ptr<Gpu>> all = visible_gpus();
  return all;
}

thread_local Gpu* current = nullptr;

int failure(const std::string& what, int code) {
  std::fprintf(stderr, "mock driver: %s\n", what.c_str());
  return code;
}

/// Runs a call on a GPU and returns the driver's error code.
int of_gpu(Gpu* gpu, const std::function<void(Gpu&)>& call) {
  if (!gpu) return failure("no GPU is current", invalid_context);
  try {
    call(*gpu);
    return success;
  } catch (const UserError& error) {
    return error.label() == "out_of_memory" ? out_of_memory : unknown;
  } catch (const std::out_of_range& error) {
    return failure(std::string("a handle of another GPU, or of none: ") + error.what(), invalid_handle);
  } catch (const std::logic_error& error) {
    return failure(error.what(), launch_failed);
  }
}
int of_current(const std::function<void(Gpu&)>& call) { return of_gpu(current, call); }
int of_device(int device, const std::function<void(Gpu&)>& call) {
  if (device < 0 || device >= static_cast<int>(gpus().size())) return invalid_device;
  return of_gpu(gpus()[static_cast<std::size_t>(device)].get(), call);
}

int put_launch(void* function, const unsigned (&grid)[3], const unsigned (&block)[3], unsigned shared_bytes,
               void* stream, void** arguments, bool is_cooperative) {
  return of_current([&](Gpu& gpu) {
    gpu.put({.function = function,
             .grid = {grid[0], grid[1], grid[2]},
             .block = {static_cast<int>(block[0]), static_cast<int>(block[1]), static_cast<int>(block[2])},
             .shared_bytes = shared_bytes,
             .is_cooperative = is_cooperative,
             .stream = stream,
             .arguments = {}},
            arguments);
  });
}

}  // namespace

}  // namespace lathe::test::mock

using namespace lathe::test::mock;  // NOLINT(google-build-using-namespace)
using lathe::cuda::Driver;

extern "C" {

/// The id of the GPU that is current on this thread, for the NCCL mock; "" for none.
const char* mock_cuda_current() { return current ? current->driver.device_ids.front().c_str() : ""; }

/// Logs launches to a file from now on, instead of the one of MOCK_CUDA_LOG.
void mock_cuda_log(const char* path) {
  if (std::FILE* const before = log_file()) std::fclose(before);
  log_file() = opened(path);
}

int cuInit(unsigned) { return gpus().empty() ? no_device : success; }
int cuGetErrorName(int code, const char** name) {
  switch (code) {
    case out_of_memory: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case no_device: *name = "CUDA_ERROR_NO_DEVICE"; break;
    case invalid_context: *name = "CUDA_ERROR_INVALID_CONTEXT"; break;
    case invalid_handle: *name = "CUDA_ERROR_INVALID_HANDLE"; break;
    default: *name = "CUDA_ERROR_UNKNOWN";
  }
  return success;
}
int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(gpus().size());
  return success;
}
int cuDeviceGetName(char* name, int size, int device) {
  return of_device(device, [&](Gpu& gpu) {
    std::snprintf(name, static_cast<std::size_t>(size), "%s", gpu.driver.device_name(0).c_str());
  });
}
int cuDeviceGetAttribute(int* value, int which, int device) {
  return of_device(device, [&](Gpu& gpu) {
    const int capability = gpu.driver.compute_capability(0);
    const std::map<int, int> values{
        {75, capability / 10}, {76, capability % 10}, {16, 132}, {13, 1785000}, {36, 2619000}, {37, 5120}, {95, 1}};
    *value = values.at(which);
  });
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  return of_device(device, [&](Gpu& gpu) { *bytes = gpu.driver.total_memory(0); });
}
int cuDeviceGetUuid_v2(unsigned char* id, int device) {
  return of_device(device, [&](Gpu& gpu) {
    const std::string digits = gpu.driver.device_id(0);
    for (std::size_t i = 0; i < 16; ++i)
      id[i] = static_cast<unsigned char>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
  });
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  return of_device(device, [&](Gpu& gpu) {
    gpu.driver.retain_context(0);
    *context = &gpu;
  });
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  return of_device(device, [&](Gpu& gpu) { gpu.driver.release_context(0); });
}
int cuCtxGetDevice(int* device) {
  return of_current([&](Gpu& gpu) {
    *device = 0;
    while (gpus()[static_cast<std::size_t>(*device)].get() != &gpu) ++*device;
  });
}
int cuCtxSetCurrent(void* context) {
  current = static_cast<Gpu*>(context);
  return success;
}

int cuMemAlloc_v2(Pointer* memory, std::size_t bytes) {
  return of_current([&](Gpu& gpu) { *memory = gpu.driver.allocate(bytes); });
}
int cuMemFree_v2(Pointer memory) {
  return of_current([&](Gpu& gpu) {
    (void)gpu.driver.bytes_from(memory);
    gpu.driver.free(memory);
  });
}
int cuMemcpyHtoDAsync_v2(Pointer to, const void* from, std::size_t bytes, void* stream) {
  return of_current([&](Gpu& gpu) { gpu.driver.copy_to_device(to, from, bytes, stream); });
}
int cuMemcpyDtoHAsync_v2(void* to, Pointer from, std::size_t bytes, void* stream) {
  return of_current([&](Gpu& gpu) { gpu.driver.copy_to_host(to, from, bytes, stream); });
}
int cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, std::size_t bytes, void* stream) {
  return of_current([&](Gpu& gpu) { gpu.driver.copy_on_device(to, from, bytes, stream); });
}
int cuMemcpyAsync(Pointer to, Pointer from, std::size_t bytes, void* stream) {
  return of_current([&](Gpu& gpu) { gpu.copy(to, from, bytes, stream); });
}
int cuMemsetD8Async(Pointer to, unsigned char byte, std::size_t bytes, void* stream) {
  return of_current([&](Gpu& gpu) { gpu.driver.fill(to, byte, bytes, gpu.stream(stream)); });
}

int cuStreamCreate(void** stream, unsigned) {
  return of_current([&](Gpu& gpu) { *stream = gpu.driver.create_stream(); });
}
int cuStreamDestroy_v2(void* stream) {
  return of_current([&](Gpu& gpu) { gpu.driver.destroy_stream(stream); });
}
int cuStreamSynchronize(void* stream) {
  return of_current([&](Gpu& gpu) { gpu.driver.synchronize(gpu.stream(stream)); });
}
int cuStreamBeginCapture_v2(void* stream, int) {
  return of_current([&](Gpu& gpu) { gpu.driver.begin_capture(stream); });
}
int cuStreamEndCapture(void* stream, void** graph) {
  return of_current([&](Gpu& gpu) { *graph = gpu.driver.end_capture(stream); });
}
/// A captured graph is executable as it is: both are the same object.
int cuGraphInstantiateWithFlags(void** ready, void* graph, unsigned long long) {
  *ready = graph;
  return success;
}
int cuGraphDestroy(void*) { return success; }
int cuGraphLaunch(void* graph, void* stream) {
  return of_current([&](Gpu& gpu) { gpu.driver.launch_graph(graph, stream); });
}
int cuGraphExecDestroy(void* graph) {
  return of_current([&](Gpu& gpu) { gpu.driver.destroy_graph(graph); });
}

int cuEventCreate(void** event, unsigned) {
  return of_current([&](Gpu& gpu) { *event = gpu.driver.create_event(); });
}
int cuEventDestroy_v2(void* event) {
  return of_current([&](Gpu& gpu) { gpu.driver.destroy_event(event); });
}
int cuEventRecord(void* event, void* stream) {
  return of_current([&](Gpu& gpu) { gpu.driver.record(event, stream); });
}
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  return of_current([&](Gpu& gpu) { gpu.driver.wait(stream, event); });
}
int cuEventQuery(void* event) {
  bool has_passed = false;
  const int code = of_current([&](Gpu& gpu) { has_passed = gpu.driver.has_passed(event); });
  return code == success && !has_passed ? not_ready : code;
}
int cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  return of_current(
      [&](Gpu& gpu) { *milliseconds = static_cast<float>(1e3 * gpu.driver.seconds_between(start, end)); });
}

int cuModuleLoadData(void** module, const void* cubin) {
  return of_current([&](Gpu& gpu) {
    auto library = std::make_unique<Library>(unpack_cubin(cubin));
    *module = gpu.driver.load_module("");
    gpu.modules[*module] = std::move(library);
  });
}
int cuModuleUnload(void* module) {
  return of_current([&](Gpu& gpu) {
    gpu.driver.unload_module(module);
    gpu.modules.erase(module);
  });
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  return of_current([&](Gpu& gpu) {
    *function = gpu.driver.find_function(module, name);
    gpu.functions[*function] = gpu.modules.at(module)->kernel();
  });
}
int cuFuncSetAttribute(void* function, int, int bytes) {
  return of_current([&](Gpu& gpu) { gpu.driver.allow_shared_memory(function, bytes); });
}
int cuTensorMapEncodeTiled(Driver::TensorMap* map, int type, std::uint32_t rank, void* address,
                           const std::uint64_t* sizes, const std::uint64_t* strides, const std::uint32_t* box,
                           const std::uint32_t*, int, int, int, int) {
  return of_current([&](Gpu& gpu) {
    constexpr int map_of_f16 = 6;
    *map = gpu.driver.encode({.dtype = type == map_of_f16 ? lathe::DType::f16 : lathe::DType::bf16,
                              .address = reinterpret_cast<Pointer>(address),
                              .sizes = {sizes, sizes + rank},
                              .strides = {strides, strides + rank - 1},
                              .box = {box, box + rank}});
  });
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads, std::size_t shared_bytes) {
  return of_current([&](Gpu& gpu) {
    gpu.driver.most_resident_blocks(function, threads, static_cast<std::int64_t>(shared_bytes));
    *blocks = 1;
  });
}
int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream, void** arguments,
                   void**) {
  const unsigned grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  return put_launch(function, grid, block, shared_bytes, stream, arguments, false);
}
int cuLaunchCooperativeKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                              unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream,
                              void** arguments) {
  const unsigned grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  return put_launch(function, grid, block, shared_bytes, stream, arguments, true);
}
}
