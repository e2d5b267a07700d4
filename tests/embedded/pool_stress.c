/* Loops of a pool under ThreadSanitizer: plain memory that tasks write is read after the loop. */
#include <stdio.h>

#include "lathe_pool.h"

static int64_t sums[64];

static void task(void *argument, int64_t i, int32_t worker) {
  (void)worker;
  sums[i] += *(int64_t *)argument;
}

int main(void) {
  lathe_pool pool;
  int64_t total = 0, expected = 0;
  if (lathe_pool_start(&pool, 4) != 0) return 1;
  for (int64_t round = 1; round <= 3000; ++round) {
    const int64_t count = round % 64 + 1;
    lathe_pool_run(&pool, count, task, &round);
    expected += round * count;
    if (round % 500 == 0) usleep(2000); /* threads sleep meanwhile */
  }
  for (int i = 0; i < 64; ++i) total += sums[i];
  lathe_pool_stop(&pool);
  printf("%s\n", total == expected ? "equal" : "different");
  return total != expected;
}
