/* Trains a GPT-2 on the bytes of a text. It reads and writes parameters and optimizer states as .safetensors files:
     train TEXT STEPS START.safetensors RESULT.safetensors */
#include <stdio.h>
#include <stdlib.h>

#include "gpt.h"
#include "lathe_memory.h"
#include "lathe_pool.h"
#include "lathe_safetensors.h"

enum { B = 4, T = 32 }; /* sequences of a batch, and their tokens; at most those of --max */

static int fail(const char *what) {
  fprintf(stderr, "train: %s\n", what);
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 5) return fail("give a text, a number of steps, a checkpoint to start from, and one to write");
  size_t size = 0, bytes = 0, header_bytes = 0;
  const unsigned char *text = lathe_file_map(argv[1], &size), *start = lathe_file_map(argv[3], &bytes);
  if (text == NULL || size <= T + 1) return fail("the text cannot be read, or is too short");
  gpt library;
  gpt_states states;
  void *block = lathe_memory_get(gpt_place_states(NULL, &states)); /* parameters and AdamW's moments */
  gpt_place_states(block, &states);
  const char *header = gpt_file_header(&header_bytes);
  lathe_safetensors from, to;
  if (lathe_safetensors_open(&from, start, bytes) != 0) return fail(from.message);
  lathe_safetensors_layout(&to, header, header_bytes, block, GPT_FILE_BYTES);
  if (lathe_safetensors_copy(&to, &from) != to.count) return fail(from.message);
  lathe_pool pool;
  if (lathe_pool_start(&pool, 0) != 0) return fail("no threads");
  float loss, norm, rate;
  int64_t tokens[B][T + 1];
  gpt_call call = {.dims = {B, T},
                   .inputs = {&tokens[0][0]},
                   .states = &states,
                   .outputs = {.loss = &loss, .grad_norm = &norm, .learning_rate = &rate},
                   .workers = &pool.workers};
  int32_t error = gpt_init(&library, &call.dims, NULL, 0);
  call.workspace_bytes = (size_t)gpt_workspace_bytes(&library, pool.workers.count);
  call.workspace = lathe_memory_get(call.workspace_bytes);
  for (size_t step = 0; !error && step < strtoul(argv[2], NULL, 10); ++step) {
    for (size_t b = 0; b < B; ++b)
      for (size_t t = 0; t <= T; ++t) tokens[b][t] = text[(step * B + b) * T % (size - T) + t];
    error = gpt_run(&library, &call); /* forward, backward, clipping and AdamW: the states change in place */
    if (!error) printf("step %zu: loss %.9g\n", step + 1, (double)loss);
  }
  if (error) return fail(gpt_message(error));
  FILE *file = fopen(argv[4], "wb");
  if (file == NULL || fwrite(header, 1, header_bytes, file) != header_bytes ||
      fwrite(block, 1, GPT_FILE_BYTES, file) != GPT_FILE_BYTES || fclose(file) != 0)
    return fail("the checkpoint cannot be written");
  lathe_pool_stop(&pool);
  return 0;
}
