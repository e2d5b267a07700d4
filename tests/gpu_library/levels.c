/* Prints the level of a library that the GPU uses. */
#include <stdio.h>

#include "g.h"
#include "lathe_cuda.h"

int main(void) {
  static lathe_gpu gpu;
  static g library;
  if (lathe_gpu_open(&gpu, 0) != 0) return puts(gpu.message), 1;
  const int32_t error = g_init(&library, &gpu.driver, NULL, NULL, 0);
  if (error) return puts(g_message(error)), 0;
  printf("level %d: %s\n", library.level, g_message(g_release(&library)));
  lathe_gpu_close(&gpu);
  return 0;
}
