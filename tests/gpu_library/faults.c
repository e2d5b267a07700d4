/* Makes mistakes with a library of a graph with inputs ids and table, a state count, and a dim n up to 4. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "g.h"
#include "lathe_cuda.h"

static lathe_gpu gpu;

static int failing_load(void **module, const void *image) {
  (void)image;
  *module = NULL;
  return 200;
}

int main(void) {
  g library, other;
  g_states host, states;
  float values[4] = {0};
  int64_t count = 0, ids[4] = {0, 1, 2, 3}, wrong_ids[4] = {0, 1, 2, 70};
  const g_dims dims = {4}, large = {5};
  if (lathe_gpu_open(&gpu, 0) != 0) return puts(gpu.message), 1;
  lathe_cuda broken = gpu.driver;
  broken.load_module = failing_load;
  memset(&library, 0, sizeof library);
  memset(&other, 0, sizeof other);
  host.count = &count;
  puts(g_message(g_init(NULL, &gpu.driver, &dims, &host, 1)));
  puts(g_message(g_init(&library, NULL, &dims, &host, 1)));
  puts(g_message(g_init(&library, &broken, &dims, &host, 1)));
  puts(g_message(g_release(&library)));
  puts(g_message(g_init(&library, &gpu.driver, &large, &host, 1)));
  puts(g_message(g_init(&library, &gpu.driver, &dims, &host, 1)));

  char *memory = (char *)lathe_gpu_get(&gpu, 4096);
  states.count = (int64_t *)(void *)memory;
  puts(g_message(g_copy_states(&library, NULL, &states, &host, NULL)));
  puts(g_message(g_copy_states(&library, &dims, NULL, &host, NULL)));
  puts(g_message(g_copy_states(&library, &dims, &states, &host, NULL)));
  g_call call;
  memset(&call, 0, sizeof call);
  call.dims = dims;
  call.states = &states;
  call.inputs.ids = (int64_t *)(void *)(memory + 256);
  call.inputs.table = (float *)(void *)(memory + 512);
  call.outputs.y = (float *)(void *)(memory + 2048);
  call.workspace_bytes = (size_t)g_workspace_bytes(&library);
  call.workspace = lathe_gpu_get(&gpu, call.workspace_bytes);
  lathe_gpu_copy(&gpu, memory + 256, ids, sizeof ids);

  g_call wrong = call;
  puts(g_message(g_check(&other, &call)));
  puts(g_message(g_check(&library, NULL)));
  puts(g_message(g_wait(&library, NULL)));
  wrong.dims = large;
  puts(g_message(g_enqueue(&library, &wrong)));
  wrong = call, wrong.inputs.ids = NULL;
  puts(g_message(g_run(&library, &wrong)));
  wrong = call, wrong.inputs.table = (float *)(void *)(memory + 520);
  puts(g_message(g_run(&library, &wrong)));
  wrong = call, wrong.outputs.y = (float *)(void *)(memory + 512);
  puts(g_message(g_run(&library, &wrong)));
  wrong = call, wrong.states = NULL;
  puts(g_message(g_run(&library, &wrong)));
  wrong = call, wrong.workspace = NULL;
  puts(g_message(g_run(&library, &wrong)));
  wrong = call, wrong.workspace_bytes -= 1;
  puts(g_message(g_run(&library, &wrong)));
  puts(g_message(g_run(&library, &call)));
  lathe_gpu_copy(&gpu, memory + 256, wrong_ids, sizeof wrong_ids);
  puts(g_message(g_enqueue(&library, &call)));
  puts(g_message(g_wait(&library, &call)));
  puts(g_message(-12345));
  puts(g_message(12345));
  lathe_gpu_copy(&gpu, values, memory + 2048, sizeof values);
  puts(g_message(g_release(&library)));
  puts(g_message(g_run(&library, &call)));
  lathe_gpu_close(&gpu);
  lathe_gpu_close(&gpu);
  return 0;
}
