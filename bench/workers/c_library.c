/* A C library of an encoder or a language model, with its weights, as a process that waits for commands:
   bench/run_aot.py compiles it with the library and MODEL_OUTPUT, f32[batch, length, MODEL_WIDTH], and starts it as
     c_library THREADS BATCH LENGTH
   It prints a line of JSON with the first 64 values of a result, and answers "run N" with the seconds of N runs. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lathe_memory.h"
#include "lathe_pool.h"
#include "model.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int fail(const char* what) {
  fprintf(stderr, "c_library: %s\n", what);
  return 1;
}

int main(int argc, char** argv) {
  if (argc != 4) return fail("give threads, a batch and a length");
  const int64_t batch = atoll(argv[2]), length = atoll(argv[3]);
  model library;
  lathe_pool pool;
  if (lathe_pool_start(&pool, atoi(argv[1])) != 0) return fail("no threads");
  int64_t* tokens = lathe_memory_get((size_t)(batch * length) * sizeof *tokens);
  float* result = lathe_memory_get((size_t)(batch * length) * MODEL_WIDTH * sizeof *result);
  for (int64_t i = 0; i < batch * length; ++i) tokens[i] = (i * 7919 + 13) % 30522;
  model_call call = {
      .dims = {batch, length}, .inputs = {tokens}, .outputs = {.MODEL_OUTPUT = result}, .workers = &pool.workers};
  int32_t error = model_init(&library, &call.dims);
  call.workspace_bytes = (size_t)model_workspace_bytes(&library, pool.workers.count);
  call.workspace = lathe_memory_get(call.workspace_bytes);
#ifdef MODEL_PACK_BYTES
  uint8_t* packed = lathe_memory_get(MODEL_PACK_BYTES);
  model_pack_call pack = {.dims = call.dims,
                          .outputs = {packed},
                          .workspace = call.workspace,
                          .workspace_bytes = call.workspace_bytes,
                          .workers = &pool.workers};
  call.inputs.packed_weights = packed;
  if (!error) error = model_pack_run(&library, &pack);
#endif
  if (!error) error = model_run(&library, &call);
  if (error) return fail(model_message(error));
  printf("{\"values\":[");
  for (int i = 0; i < 64; ++i) printf(i == 0 ? "%.9g" : ",%.9g", (double)result[i]);
  puts("]}");
  fflush(stdout);
  for (int runs; scanf(" run %d", &runs) == 1;) {
    printf("{\"seconds\":[");
    for (int i = 0; i < runs; ++i) {
      const double before = now();
      if (model_run(&library, &call) != 0) return fail("a run failed");
      printf(i == 0 ? "%.9f" : ",%.9f", now() - before);
    }
    puts("]}");
    fflush(stdout);
  }
  lathe_pool_stop(&pool);
  return 0;
}
