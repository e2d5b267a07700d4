/* Calls a library for GPUs once, with the values of a file, and writes what it computed:
     runner ARGUMENTS.safetensors RESULTS          runs the graph
     runner ARGUMENTS.safetensors RESULTS SEED     initialises the states
   calls.h, which a test writes, has the names of the tensors. */
#include "calls.h"

#include <stdio.h>
#include <stdlib.h>

#include "g.h"
#include "lathe_cuda.h"
#include "lathe_memory.h"
#include "lathe_safetensors.h"

static lathe_gpu gpu;
static lathe_safetensors file;

static void fail(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static void require(int32_t error) {
  if (error) fail(g_message(error));
}

/* Returns the values of a tensor in the file. */
static void *values_of(const char *name, size_t bytes) {
  lathe_tensor tensor;
  if (!lathe_safetensors_get(&file, name, &tensor)) fail(file.message);
  if (tensor.bytes != bytes) fail(tensor.name);
  return tensor.data;
}

static void *on_gpu(const char *name, size_t bytes) {
  void *memory = lathe_gpu_get(&gpu, bytes);
  if (memory == NULL) fail("no memory on the GPU");
  if (name != NULL && lathe_gpu_copy(&gpu, memory, values_of(name, bytes), bytes) != 0) fail("a copy to the GPU fails");
  return memory;
}

static void write_from_gpu(FILE *results, void *memory, size_t bytes) {
  void *values = malloc(bytes > 0 ? bytes : 1);
  if (values == NULL || lathe_gpu_copy(&gpu, values, memory, bytes) != 0) fail("a copy from the GPU fails");
  if (fwrite(values, 1, bytes, results) != bytes) fail("the results cannot be written");
  free(values);
  lathe_gpu_release(&gpu, memory);
}

int main(int argc, char **argv) {
  size_t size = 0;
  if (argc < 3) fail("give two files");
  if (lathe_gpu_open(&gpu, 0) != 0) fail(gpu.message);
  void *bytes = lathe_file_map(argv[1], &size);
  if (bytes == NULL || lathe_safetensors_open(&file, bytes, size) != 0) fail("the arguments cannot be read");
  FILE *results = fopen(argv[2], "wb");
  if (results == NULL) fail("the results cannot be written");

  g library;
  g_call call;
  memset(&call, 0, sizeof call);
#ifdef DIMS
  const g_dims dims = DIMS;
  call.dims = dims;
#endif
#ifdef G_CONSTANT_BYTES
  void *constants = on_gpu(NULL, G_CONSTANT_BYTES);
#endif
#ifdef STATES
  g_states on_host, states;
  void *host_block = malloc(g_place_states(BLOCK_DIMS NULL, &on_host));
  void *block = on_gpu(NULL, g_place_device_states(BLOCK_DIMS NULL, &states));
  g_place_states(BLOCK_DIMS host_block, &on_host);
  g_place_device_states(BLOCK_DIMS block, &states);
  require(INIT(&library, argc > 3 ? &on_host : NULL, argc > 3 ? strtoull(argv[3], NULL, 10) : 0));
#define VALUES(name, member, bytes) \
  if (argc <= 3) memcpy(on_host.member, values_of(name, bytes), bytes);
  STATES(VALUES)
  call.states = &states;
#else
  require(INIT(&library));
#endif
  call.stream = lathe_gpu_stream(&gpu);
#define INPUT(name, member, bytes) call.inputs.member = on_gpu(name, bytes);
  INPUTS(INPUT)
#define OUTPUT(name, member, bytes) call.outputs.member = on_gpu(NULL, bytes);
  OUTPUTS(OUTPUT)
  call.workspace_bytes = (size_t)g_workspace_bytes(&library);
  call.workspace = on_gpu(NULL, call.workspace_bytes);
#ifdef STATES
  require(g_copy_states(&library, COPY_DIMS &states, &on_host, call.stream));
#endif
  require(g_check(&library, &call));
  if (argc <= 3) {
    require(g_enqueue(&library, &call));
    require(g_wait(&library, &call));
  }
#define RESULT(name, member, bytes) write_from_gpu(results, call.outputs.member, bytes);
  if (argc <= 3) {
    OUTPUTS(RESULT)
  }
#ifdef STATES
  require(g_copy_states(&library, COPY_DIMS &on_host, &states, call.stream));
#define STATE(name, member, bytes) \
  if (fwrite(on_host.member, 1, bytes, results) != bytes) fail("the results cannot be written");
  STATES(STATE)
  lathe_gpu_release(&gpu, block);
  free(host_block);
#endif
  require(g_release(&library));
  if (g_check(&library, &call) == 0) fail("a released library is checked");
  lathe_gpu_release(&gpu, call.workspace);
  lathe_gpu_release_stream(&gpu, call.stream);
  lathe_gpu_close(&gpu);
  return fclose(results) == 0 ? 0 : 1;
}
