#pragma once

/* A GPU for libraries that `lathe compile` wrote: opens NVIDIA's driver, libcuda.so.1, when the program runs. Nothing
   of CUDA is needed to compile or link the program.

     lathe_gpu gpu;
     if (lathe_gpu_open(&gpu, 0) != 0) return puts(gpu.message);  // the first GPU
     int32_t error = gpt_init(&library, &gpu.driver, ...);
     void *workspace = lathe_gpu_get(&gpu, bytes);                // NULL: the GPU has not enough memory
     lathe_gpu_copy(&gpu, inputs.tokens, tokens, sizeof tokens);  // to the GPU, or from it
     lathe_gpu_release(&gpu, workspace);
     lathe_gpu_close(&gpu);

   Programs that use CUDA themselves need none of it: they fill a lathe_cuda with the functions of cuda.h, and pass
   memory of cudaMalloc and streams of their own. Needs C99 or C++, and POSIX. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef LATHE_CUDA
#define LATHE_CUDA
/* Functions of the CUDA driver, which libraries call. lathe_cuda.h finds them in libcuda.so.1. The types are those of
   cuda.h, with void * for handles and uint64_t for device memory. */
typedef struct lathe_cuda {
  int (*context_device)(int* device);                                       /* cuCtxGetDevice */
  int (*device_attribute)(int* value, int attribute, int device);           /* cuDeviceGetAttribute */
  int (*load_module)(void** module, const void* image);                     /* cuModuleLoadData */
  int (*unload_module)(void* module);                                       /* cuModuleUnload */
  int (*find_function)(void** function, void* module, const char* name);    /* cuModuleGetFunction */
  int (*set_function)(void* function, int attribute, int value);            /* cuFuncSetAttribute */
  int (*copy)(uint64_t to, uint64_t from, size_t bytes, void* stream);      /* cuMemcpyAsync */
  int (*fill)(uint64_t to, unsigned char byte, size_t count, void* stream); /* cuMemsetD8Async */
  int (*synchronize)(void* stream);                                         /* cuStreamSynchronize */
  int (*encode)(void* map, int type, uint32_t rank, void* start, const uint64_t* sizes, const uint64_t* strides,
                const uint32_t* box, const uint32_t* steps, int interleave, int swizzle, int promotion,
                int fill); /* cuTensorMapEncodeTiled */
  int (*launch)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                unsigned block_z, unsigned shared_bytes, void* stream, void** arguments,
                void** extra); /* cuLaunchKernel */
  int (*resident_blocks)(int* blocks, void* function, int threads,
                         size_t shared_bytes); /* cuOccupancyMaxActiveBlocksPerMultiprocessor */
  int (*launch_cooperative)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                            unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream,
                            void** arguments); /* cuLaunchCooperativeKernel */
} lathe_cuda;
#endif

/* A GPU, its context, and the functions of the driver. */
typedef struct lathe_gpu {
  lathe_cuda driver;   /* for the libraries */
  const char* message; /* of the error of lathe_gpu_open() */
  int number;
  void *opened, *context;
  int (*init)(unsigned flags);
  int (*retain)(void** context, int device);
  int (*leave)(int device);
  int (*make_current)(void* context);
  int (*allocate)(uint64_t* memory, size_t bytes);
  int (*free_memory)(uint64_t memory);
  int (*create_stream)(void** stream, unsigned flags);
  int (*destroy_stream)(void* stream);
} lathe_gpu;

/* Makes the GPU current in this thread: each thread that uses it calls it once. Returns 0 or the driver's error. */
static inline int lathe_gpu_use(lathe_gpu* gpu) { return gpu->make_current(gpu->context); }

/* Releases what lathe_gpu_open() took. */
static inline void lathe_gpu_close(lathe_gpu* gpu) {
  if (gpu->context != NULL) gpu->leave(gpu->number);
  if (gpu->opened != NULL) dlclose(gpu->opened);
  gpu->context = gpu->opened = NULL;
}

/* Opens the driver and makes GPU `number` current in this thread; CUDA_VISIBLE_DEVICES chooses the GPUs that count.
   Returns 0, or an error whose message is in `gpu->message`: the driver's number, or -1. */
static inline int lathe_gpu_open(lathe_gpu* gpu, int number) {
  struct {
    const char* name;
    void* function;
  } const functions[] = {
      {"cuCtxGetDevice", &gpu->driver.context_device},
      {"cuDeviceGetAttribute", &gpu->driver.device_attribute},
      {"cuModuleLoadData", &gpu->driver.load_module},
      {"cuModuleUnload", &gpu->driver.unload_module},
      {"cuModuleGetFunction", &gpu->driver.find_function},
      {"cuFuncSetAttribute", &gpu->driver.set_function},
      {"cuMemcpyAsync", &gpu->driver.copy},
      {"cuMemsetD8Async", &gpu->driver.fill},
      {"cuStreamSynchronize", &gpu->driver.synchronize},
      {"cuTensorMapEncodeTiled", &gpu->driver.encode},
      {"cuLaunchKernel", &gpu->driver.launch},
      {"cuOccupancyMaxActiveBlocksPerMultiprocessor", &gpu->driver.resident_blocks},
      {"cuLaunchCooperativeKernel", &gpu->driver.launch_cooperative},
      {"cuInit", &gpu->init},
      {"cuDevicePrimaryCtxRetain", &gpu->retain},
      {"cuDevicePrimaryCtxRelease_v2", &gpu->leave},
      {"cuCtxSetCurrent", &gpu->make_current},
      {"cuMemAlloc_v2", &gpu->allocate},
      {"cuMemFree_v2", &gpu->free_memory},
      {"cuStreamCreate", &gpu->create_stream},
      {"cuStreamDestroy_v2", &gpu->destroy_stream},
  };
  memset(gpu, 0, sizeof *gpu);
  gpu->number = number;
  gpu->message = "there is no CUDA driver on this machine: libcuda.so.1 is not found";
  gpu->opened = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (gpu->opened == NULL) return -1;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i) {
    void* const found = dlsym(gpu->opened, functions[i].name);
    gpu->message = "libcuda.so.1 lacks a function: install a driver for CUDA 12 or newer";
    if (found == NULL) {
      lathe_gpu_close(gpu);
      return -1;
    }
    memcpy(functions[i].function, &found, sizeof found); /* C has no cast between pointers to data and to functions */
  }
  gpu->message = "the CUDA driver finds no GPU";
  int error = gpu->init(0);
  if (error == 0) {
    gpu->message = "the GPU does not exist, or has no memory left for a context";
    error = gpu->retain(&gpu->context, number);
  }
  if (error == 0) error = lathe_gpu_use(gpu);
  if (error != 0) lathe_gpu_close(gpu);
  return error;
}

/* Returns memory of the GPU with any content; NULL if there is not enough. */
static inline void* lathe_gpu_get(lathe_gpu* gpu, size_t bytes) {
  uint64_t memory = 0;
  return gpu->allocate(&memory, bytes > 0 ? bytes : 1) == 0 ? (void*)(uintptr_t)memory : NULL;
}

/* Releases memory of lathe_gpu_get(); NULL is ignored. */
static inline void lathe_gpu_release(lathe_gpu* gpu, void* memory) {
  if (memory != NULL) gpu->free_memory((uint64_t)(uintptr_t)memory);
}

/* Copies bytes between memory of the GPU and of the program, in any direction, and waits for all work on the default
   stream. Returns 0 or the driver's error. */
static inline int lathe_gpu_copy(lathe_gpu* gpu, void* to, const void* from, size_t bytes) {
  const int error = gpu->driver.copy((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, bytes, NULL);
  return error != 0 ? error : gpu->driver.synchronize(NULL);
}

/* Returns a new stream, which runs next to the default one; NULL if there is an error. */
static inline void* lathe_gpu_stream(lathe_gpu* gpu) {
  void* stream = NULL;
  const unsigned non_blocking = 1;
  return gpu->create_stream(&stream, non_blocking) == 0 ? stream : NULL;
}

static inline void lathe_gpu_release_stream(lathe_gpu* gpu, void* stream) {
  if (stream != NULL) gpu->destroy_stream(stream);
}

#ifdef __cplusplus
}
#endif
