/* Initialises a library of joined launches, without constants, dims and states, on GPUs with and without cooperative
   launches. */
#include <stdio.h>
#include <string.h>

#include "g.h"
#include "lathe_cuda.h"

static lathe_gpu gpu;

static int without_cooperation(int *value, int attribute, int device) {
  const int cooperative = 95;
  const int error = gpu.driver.device_attribute(value, attribute, device);
  if (attribute == cooperative) *value = 0;
  return error;
}

static int without_room(int *blocks, void *function, int threads, size_t shared_bytes) {
  (void)function, (void)threads, (void)shared_bytes;
  *blocks = 0;
  return 0;
}

int main(void) {
  g library;
  if (lathe_gpu_open(&gpu, 0) != 0) return puts(gpu.message), 1;
  memset(&library, 0, sizeof library);
  lathe_cuda driver = gpu.driver;
  driver.device_attribute = without_cooperation;
  puts(g_message(g_init(&library, &driver)));
  driver = gpu.driver;
  driver.resident_blocks = without_room;
  puts(g_message(g_init(&library, &driver)));
  puts(g_message(g_init(&library, &gpu.driver)));
  puts(g_message(g_release(&library)));
  lathe_gpu_close(&gpu);
  return 0;
}
