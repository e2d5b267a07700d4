#include "runtime/cuda/library/cuda_header.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "runtime/library/c_names.h"

namespace lathe::cuda {

std::string CudaHeader::rules() const {
  return "   Pointers in a call are device memory of the caller, aligned to 16 bytes. Tensors are dense and "
         "row-major. No\n"
         "   function allocates memory or has global state. A context of CUDA must be current in the thread of each "
         "call,\n"
         "   the same for all calls of a library.";
}

std::string CudaHeader::shared_types() const {
  return R"(#ifndef LATHE_CUDA
#define LATHE_CUDA
/* Functions of the CUDA driver, which libraries call. lathe_cuda.h finds them in libcuda.so.1. The types are those of
   cuda.h, with void * for handles and uint64_t for device memory. */
typedef struct lathe_cuda {
  int (*context_device)(int *device);                                       /* cuCtxGetDevice */
  int (*device_attribute)(int *value, int attribute, int device);           /* cuDeviceGetAttribute */
  int (*load_module)(void **module, const void *image);                     /* cuModuleLoadData */
  int (*unload_module)(void *module);                                       /* cuModuleUnload */
  int (*find_function)(void **function, void *module, const char *name);    /* cuModuleGetFunction */
  int (*set_function)(void *function, int attribute, int value);            /* cuFuncSetAttribute */
  int (*copy)(uint64_t to, uint64_t from, size_t bytes, void *stream);      /* cuMemcpyAsync */
  int (*fill)(uint64_t to, unsigned char byte, size_t count, void *stream); /* cuMemsetD8Async */
  int (*synchronize)(void *stream);                                         /* cuStreamSynchronize */
  int (*encode)(void *map, int type, uint32_t rank, void *start, const uint64_t *sizes, const uint64_t *strides,
                const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion,
                int fill); /* cuTensorMapEncodeTiled */
  int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                unsigned block_z, unsigned shared_bytes, void *stream, void **arguments,
                void **extra); /* cuLaunchKernel */
  int (*resident_blocks)(int *blocks, void *function, int threads,
                         size_t shared_bytes); /* cuOccupancyMaxActiveBlocksPerMultiprocessor */
  int (*launch_cooperative)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                            unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream,
                            void **arguments); /* cuLaunchCooperativeKernel */
} lathe_cuda;
#endif

)";
}

std::string CudaHeader::instance_members() const {
  return fmt::format(
      "  int32_t level; /* the architecture that calls use: {} */\n"
      "  const lathe_cuda *driver; /* must stay valid until {}_release() */\n"
      "  void *constants;\n"
      "  void *handles[{}]; /* of the kernels */\n",
      c_levels(plan_.targets), p_, std::max<std::size_t>(1, 3 * kernels_));
}

std::string CudaHeader::call_members() const {
  return "  void *stream; /* CUstream or cudaStream_t; null: the default stream */\n";
}

std::string CudaHeader::init_parameters() const {
  return std::string(", const lathe_cuda *driver") + (constant_bytes_ > 0 ? ", void *constants" : "");
}

std::string CudaHeader::init_arguments() const {
  return std::string(", &driver") + (constant_bytes_ > 0 ? ", constants" : "");
}

std::string CudaHeader::init_comment() const {
  return "Loads the kernels for the GPU of the current context" +
         std::string(constant_bytes_ > 0 ? ", and copies constants to the device memory `constants`" : "");
}

std::string CudaHeader::workspace_function() const {
  std::string text;
  if (constant_bytes_ > 0) {
    std::string macro = p_;
    std::ranges::transform(macro, macro.begin(), [](unsigned char c) { return std::toupper(c); });
    text = fmt::format(
        "/* The bytes of device memory for constants, until {}_release(). */\n"
        "#define {}_CONSTANT_BYTES ((size_t){})\n\n",
        p_, macro, constant_bytes_);
  }
  if (!plan_.states.empty())
    text += fmt::format(
        "/* The states of {0}_init() are host memory; {0}_copy_states() copies them to the device. */\n\n", p_);
  return text +
         fmt::format(
             "/* Returns the bytes of device memory that calls need as workspace, or -1 if the library is not\n"
             "   initialised. */\nint64_t {0}_workspace_bytes(const {0} *library);\n\n",
             p_);
}

std::string CudaHeader::run_functions(const std::string& name, const std::string& graph) const {
  return fmt::format(
      "/* The same, then puts @{2} on the stream of the call, and returns without waiting for it. */\n"
      "int32_t {0}_enqueue(const {1} *library, const {0}_call *call);\n"
      "/* Waits for the work on the stream, and returns the error of a run-time check of the last {0}_enqueue() "
      "with\n"
      "   this workspace. After an error, outputs and updated states have unspecified values. */\n"
      "int32_t {0}_wait(const {1} *library, const {0}_call *call);\n"
      "/* Both: {0}_enqueue() and {0}_wait(). */\n"
      "int32_t {0}_run(const {1} *library, const {0}_call *call);\n\n",
      name, p_, graph);
}

std::string CudaHeader::other_functions(const std::string& dims) const {
  std::string text;
  if (!plan_.states.empty())
    text = fmt::format(
        "/* Copies all states, and waits for the stream. Each side may be host or device memory. */\n"
        "int32_t {0}_copy_states(const {0} *library, {1}const {0}_states *to, const {0}_states *from, void "
        "*stream);\n"
        "\n",
        p_, dims);
  return text + fmt::format(
                    "/* Unloads the kernels. The stream must have no work of the library left. */\n"
                    "int32_t {0}_release({0} *library);\n\n",
                    p_);
}

}  // namespace lathe::cuda
