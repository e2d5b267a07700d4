#include "runtime/cuda/driver.h"

#include <dlfcn.h>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "ir/hardware/gpu_info.h"
#include "ir/support/error.h"

namespace lathe::cuda {

namespace {

constexpr const char* library_name = "libcuda.so.1";

// Constants of cuda.h, so that it need not be installed.
constexpr int out_of_memory = 2, deinitialized = 4, no_device = 100, not_ready = 600, cooperative_too_large = 720;
constexpr int attribute_major = 75, attribute_minor = 76, attribute_processors = 16, attribute_clock = 13,
              attribute_memory_clock = 36, attribute_memory_bus = 37, attribute_cooperative = 95;
constexpr int function_max_dynamic_shared = 8;
constexpr unsigned stream_non_blocking = 1;
constexpr int capture_thread_local = 1;
constexpr int map_of_f16 = 6, map_of_bf16 = 9, map_not_interleaved = 0, map_swizzle_128 = 3, map_promotes_128 = 2,
              map_fills_zeros = 0;

bool loses_device(int code) {
  return (code >= 700 && code != 701 && code != cooperative_too_large) || code == 214 || code == deinitialized;
}
bool refuses_launch(int code) { return code == 1 || code == 701 || code == 209 || code == 200; }

/// Functions of libcuda, in the versions that cuda.h of CUDA 12 and 13 uses.
struct Functions {
  int (*init)(unsigned);
  int (*error_name)(int, const char**);
  int (*device_count)(int*);
  int (*device_name)(char*, int, int);
  int (*device_attribute)(int*, int, int);
  int (*total_memory)(std::size_t*, int);
  int (*device_uuid)(unsigned char*, int);
  int (*retain)(void**, int);
  int (*release)(int);
  int (*set_current)(void*);
  int (*allocate)(Driver::Pointer*, std::size_t);
  int (*free)(Driver::Pointer);
  int (*to_device)(Driver::Pointer, const void*, std::size_t, void*);
  int (*to_host)(void*, Driver::Pointer, std::size_t, void*);
  int (*on_device)(Driver::Pointer, Driver::Pointer, std::size_t, void*);
  int (*fill)(Driver::Pointer, unsigned char, std::size_t, void*);
  int (*create_stream)(void**, unsigned);
  int (*destroy_stream)(void*);
  int (*synchronize)(void*);
  int (*begin_capture)(void*, int);
  int (*end_capture)(void*, void**);
  int (*instantiate)(void**, void*, unsigned long long);
  int (*destroy_captured)(void*);
  int (*launch_graph)(void*, void*);
  int (*destroy_graph)(void*);
  int (*create_event)(void**, unsigned);
  int (*destroy_event)(void*);
  int (*record)(void*, void*);
  int (*wait)(void*, void*, unsigned);
  int (*query)(void*);
  int (*elapsed)(float*, void*, void*);
  int (*load_module)(void**, const void*);
  int (*unload_module)(void*);
  int (*find_function)(void**, void*, const char*);
  int (*set_function)(void*, int, int);
  int (*encode)(Driver::TensorMap*, int, std::uint32_t, void*, const std::uint64_t*, const std::uint64_t*,
                const std::uint32_t*, const std::uint32_t*, int, int, int, int);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
  int (*launch_cooperative)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                            void**);
  int (*current_device)(int*);
  int (*resident_blocks)(int*, void*, int, std::size_t);
};

class NativeDriver final : public Driver {
 public:
  explicit NativeDriver(void* library) : library_(library) {
    find("cuInit", f_.init), find("cuGetErrorName", f_.error_name), find("cuDeviceGetCount", f_.device_count);
    find("cuDeviceGetName", f_.device_name), find("cuDeviceGetAttribute", f_.device_attribute);
    find("cuDeviceTotalMem_v2", f_.total_memory), find("cuDeviceGetUuid_v2", f_.device_uuid);
    find("cuDevicePrimaryCtxRetain", f_.retain);
    find("cuDevicePrimaryCtxRelease_v2", f_.release), find("cuCtxSetCurrent", f_.set_current);
    find("cuMemAlloc_v2", f_.allocate), find("cuMemFree_v2", f_.free), find("cuMemcpyHtoDAsync_v2", f_.to_device);
    find("cuMemcpyDtoHAsync_v2", f_.to_host), find("cuMemcpyDtoDAsync_v2", f_.on_device);
    find("cuMemsetD8Async", f_.fill), find("cuStreamCreate", f_.create_stream);
    find("cuStreamDestroy_v2", f_.destroy_stream), find("cuStreamSynchronize", f_.synchronize);
    find("cuStreamBeginCapture_v2", f_.begin_capture), find("cuStreamEndCapture", f_.end_capture);
    find("cuGraphInstantiateWithFlags", f_.instantiate), find("cuGraphDestroy", f_.destroy_captured);
    find("cuGraphLaunch", f_.launch_graph), find("cuGraphExecDestroy", f_.destroy_graph);
    find("cuEventCreate", f_.create_event), find("cuEventDestroy_v2", f_.destroy_event);
    find("cuEventRecord", f_.record), find("cuEventElapsedTime", f_.elapsed);
    find("cuStreamWaitEvent", f_.wait), find("cuEventQuery", f_.query);
    find("cuModuleLoadData", f_.load_module), find("cuModuleUnload", f_.unload_module);
    find("cuModuleGetFunction", f_.find_function), find("cuFuncSetAttribute", f_.set_function);
    find("cuTensorMapEncodeTiled", f_.encode), find("cuLaunchKernel", f_.launch);
    find("cuLaunchCooperativeKernel", f_.launch_cooperative), find("cuCtxGetDevice", f_.current_device);
    find("cuOccupancyMaxActiveBlocksPerMultiprocessor", f_.resident_blocks);
    check("cuInit", f_.init(0));
  }
  NativeDriver(const NativeDriver&) = delete;
  NativeDriver& operator=(const NativeDriver&) = delete;
  ~NativeDriver() override { dlclose(library_); }

  int device_count() override {
    int count = 0;
    check("cuDeviceGetCount", f_.device_count(&count));
    return count;
  }
  std::string device_name(int device) override {
    char name[256] = "";
    check("cuDeviceGetName", f_.device_name(name, sizeof name, device));
    return name;
  }
  int compute_capability(int device) override {
    return attribute(attribute_major, device) * 10 + attribute(attribute_minor, device);
  }
  Peak peak(int device) override {
    // Clocks are in kHz. Memory transfers data twice per clock.
    const int lanes = fma_lanes(compute_capability(device));
    return {.flops = 2e3 * lanes * attribute(attribute_processors, device) * attribute(attribute_clock, device),
            .bytes = 2e3 / 8 * attribute(attribute_memory_bus, device) * attribute(attribute_memory_clock, device)};
  }
  std::uint64_t total_memory(int device) override {
    std::size_t bytes = 0;
    check("cuDeviceTotalMem", f_.total_memory(&bytes, device));
    return bytes;
  }
  std::string device_id(int device) override {
    std::array<unsigned char, 16> id = {};
    check("cuDeviceGetUuid", f_.device_uuid(id.data(), device));
    return fmt::format("{:02x}", fmt::join(id, ""));
  }

  Handle retain_context(int device) override {
    Handle context = nullptr;
    check("cuDevicePrimaryCtxRetain", f_.retain(&context, device));
    make_current(context);
    return context;
  }
  void release_context(int device) override { check("cuDevicePrimaryCtxRelease", f_.release(device)); }
  void make_current(Handle context) override { check("cuCtxSetCurrent", f_.set_current(context)); }

  Pointer allocate(std::size_t bytes) override {
    Pointer memory = 0;
    const int code = f_.allocate(&memory, bytes);
    if (code != 0) throw_driver_error(fmt::format("cuMemAlloc of {} bytes", bytes), code, name_of(code));
    return memory;
  }
  void free(Pointer memory) noexcept override { f_.free(memory); }
  void copy_to_device(Pointer to, const void* from, std::size_t bytes, Handle stream) override {
    check("cuMemcpyHtoDAsync", f_.to_device(to, from, bytes, stream));
  }
  void copy_to_host(void* to, Pointer from, std::size_t bytes, Handle stream) override {
    check("cuMemcpyDtoHAsync", f_.to_host(to, from, bytes, stream));
  }
  void copy_on_device(Pointer to, Pointer from, std::size_t bytes, Handle stream) override {
    check("cuMemcpyDtoDAsync", f_.on_device(to, from, bytes, stream));
  }
  void fill(Pointer to, unsigned char byte, std::size_t bytes, Handle stream) override {
    check("cuMemsetD8Async", f_.fill(to, byte, bytes, stream));
  }

  Handle create_stream() override {
    Handle stream = nullptr;
    check("cuStreamCreate", f_.create_stream(&stream, stream_non_blocking));
    return stream;
  }
  void destroy_stream(Handle stream) noexcept override { f_.destroy_stream(stream); }
  void synchronize(Handle stream) override { check("cuStreamSynchronize", f_.synchronize(stream)); }

  void begin_capture(Handle stream) override {
    check("cuStreamBeginCapture", f_.begin_capture(stream, capture_thread_local));
  }
  Handle end_capture(Handle stream) override {
    Handle captured = nullptr, graph = nullptr;
    check("cuStreamEndCapture", f_.end_capture(stream, &captured));
    const int code = f_.instantiate(&graph, captured, 0);
    f_.destroy_captured(captured);
    check("cuGraphInstantiateWithFlags", code);
    return graph;
  }
  void launch_graph(Handle graph, Handle stream) override { check("cuGraphLaunch", f_.launch_graph(graph, stream)); }
  void destroy_graph(Handle graph) noexcept override { f_.destroy_graph(graph); }

  Handle create_event() override {
    Handle event = nullptr;
    check("cuEventCreate", f_.create_event(&event, 0));
    return event;
  }
  void destroy_event(Handle event) noexcept override { f_.destroy_event(event); }
  void record(Handle event, Handle stream) override { check("cuEventRecord", f_.record(event, stream)); }
  void wait(Handle stream, Handle event) override { check("cuStreamWaitEvent", f_.wait(stream, event, 0)); }
  bool has_passed(Handle event) override {
    const int code = f_.query(event);
    if (code != not_ready) check("cuEventQuery", code);
    return code != not_ready;
  }
  double seconds_between(Handle start, Handle end) override {
    float milliseconds = 0;
    check("cuEventElapsedTime", f_.elapsed(&milliseconds, start, end));
    return static_cast<double>(milliseconds) * 1e-3;
  }

  Handle load_module(std::string_view cubin) override {
    Handle module = nullptr;
    check("cuModuleLoadData", f_.load_module(&module, cubin.data()));
    return module;
  }
  void unload_module(Handle module) noexcept override { f_.unload_module(module); }
  Handle find_function(Handle module, const std::string& name) override {
    Handle function = nullptr;
    check("cuModuleGetFunction", f_.find_function(&function, module, name.c_str()));
    return function;
  }
  void allow_shared_memory(Handle function, std::int64_t bytes) override {
    check("cuFuncSetAttribute", f_.set_function(function, function_max_dynamic_shared, static_cast<int>(bytes)));
  }

  std::int64_t most_resident_blocks(Handle function, int threads, std::int64_t shared_bytes) override {
    int device = 0, of_each = 0;
    check("cuCtxGetDevice", f_.current_device(&device));
    if (attribute(attribute_cooperative, device) == 0) return 0;
    check("cuOccupancyMaxActiveBlocksPerMultiprocessor",
          f_.resident_blocks(&of_each, function, threads, static_cast<std::size_t>(shared_bytes)));
    return std::int64_t{of_each} * attribute(attribute_processors, device);
  }

  TensorMap encode(const Tensor& t) override {
    TensorMap map;
    const std::vector<std::uint32_t> steps(t.sizes.size(), 1);
    check("cuTensorMapEncodeTiled",
          f_.encode(&map, t.dtype == bf16 ? map_of_bf16 : map_of_f16, static_cast<std::uint32_t>(t.sizes.size()),
                    reinterpret_cast<void*>(t.address),  // NOLINT(performance-no-int-to-ptr): of the device
                    t.sizes.data(), t.strides.data(), t.box.data(), steps.data(), map_not_interleaved,
                    map_swizzle_128, map_promotes_128, map_fills_zeros));
    return map;
  }

  void launch(const Launch& l) override {
    const auto u = [](auto n) { return static_cast<unsigned>(n); };
    std::vector<void*> arguments(l.arguments.begin(), l.arguments.end());
    for (TensorMap& map : l.maps) arguments.push_back(&map);
    if (l.is_cooperative)
      return check(
          "cuLaunchCooperativeKernel",
          f_.launch_cooperative(l.function, u(l.grid[0]), u(l.grid[1]), u(l.grid[2]), u(l.block[0]), u(l.block[1]),
                                u(l.block[2]), u(l.shared_bytes), l.stream, arguments.data()));
    check("cuLaunchKernel",
          f_.launch(l.function, u(l.grid[0]), u(l.grid[1]), u(l.grid[2]), u(l.block[0]), u(l.block[1]), u(l.block[2]),
                    u(l.shared_bytes), l.stream, arguments.data(), nullptr));
  }

 private:
  template <class F>
  void find(const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(library_, name));
    if (!function)
      throw UserError(fmt::format("{} of this machine has no {}", library_name, name), "driver_missing",
                      "install a driver for CUDA 12 or newer");
  }
  int attribute(int which, int device) const {
    int value = 0;
    check("cuDeviceGetAttribute", f_.device_attribute(&value, which, device));
    return value;
  }
  std::string name_of(int code) const {
    const char* name = nullptr;
    return f_.error_name(code, &name) == 0 && name ? name : fmt::format("error {}", code);
  }
  void check(std::string_view call, int code) const {
    if (code != 0) throw_driver_error(call, code, name_of(code));
  }

  void* library_;
  Functions f_ = {};
};

}  // namespace

void throw_driver_error(std::string_view call, int code, std::string_view name) {
  const std::string text = fmt::format("the GPU's driver: {}: {}", call, name);
  if (code == out_of_memory)
    throw UserError(text, "out_of_memory", "make the batch smaller, or free what else runs on this GPU");
  if (code == no_device) throw UserError(text, "no_device", "this machine has a CUDA driver but shows no GPU");
  // Such as a process that may use some multiprocessors only.
  if (code == cooperative_too_large)
    throw UserError(text, "launch", "turn joined launches off: --no-joined-launches, or LowerOptions::join_launches");
  if (loses_device(code))
    throw UserError(text, "device_lost", "a kernel failed; its results and all device memory are lost");
  if (refuses_launch(code) && call.find("Launch") != std::string_view::npos) throw UserError(text, "launch");
  throw UserError(text, "driver");
}

std::unique_ptr<Driver> load_driver() {
  void* library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw UserError(fmt::format("there is no CUDA driver on this machine: {} is not found", library_name),
                    "driver_missing", "install NVIDIA's driver for the GPU, or compile for the CPU");
  return std::make_unique<NativeDriver>(library);
}

}  // namespace lathe::cuda
