/* Prints a vector for each line of token ids on standard input: the mean of an encoder's last states, of length 1.
   The weights are in the library, so the program reads no files. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "encoder.h"
#include "lathe_memory.h"

enum { most = 512 }; /* tokens, at most those of --max */

static int fail(const char *what) {
  fprintf(stderr, "embed: %s\n", what);
  return 1;
}

int main(void) {
  static char line[1 << 14];
  static int64_t ids[most];
  static float states[most][WIDTH];
  encoder library;
  encoder_call call = {.dims = {.B = 1}, .inputs = {ids}, .outputs = {&states[0][0]}};
  int32_t error = encoder_init(&library, &call.dims);
  if (error) return fail(encoder_message(error));
  call.workspace_bytes = (size_t)encoder_workspace_bytes(&library, 1);
  call.workspace = lathe_memory_get(call.workspace_bytes);
  while (fgets(line, sizeof line, stdin) != NULL) {
    int64_t length = 0;
    for (char *at = line, *end; length < most; at = end, ++length) {
      ids[length] = strtol(at, &end, 10);
      if (end == at) break;
    }
    if (length == most) return fail("a line has too many tokens");
    call.dims.T = length;
    error = encoder_run(&library, &call); /* an id that is not in the vocabulary is an error with its source line */
    if (error) return fail(encoder_message(error));
    float vector[WIDTH] = {0}, squares = 0;
    for (int64_t t = 0; t < length; ++t)
      for (int d = 0; d < WIDTH; ++d) vector[d] += states[t][d] / (float)length;
    for (int d = 0; d < WIDTH; ++d) squares += vector[d] * vector[d];
    for (int d = 0; d < WIDTH; ++d)
      printf("%.7g%c", (double)(vector[d] / sqrtf(fmaxf(squares, 1e-24f))), d + 1 < WIDTH ? ' ' : '\n');
  }
  return 0;
}
