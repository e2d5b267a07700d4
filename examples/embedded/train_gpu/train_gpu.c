/* Trains a GPT-2 on the bytes of a text, on a GPU. It reads and writes parameters and optimizer states as .safetensors
   files:
     train_gpu TEXT STEPS START.safetensors RESULT.safetensors */
#include <stdio.h>
#include <stdlib.h>

#include "gpt.h"
#include "lathe_cuda.h"
#include "lathe_memory.h"
#include "lathe_safetensors.h"

enum { B = 4, T = 32 }; /* sequences of a batch, and their tokens; at most those of --max */

static int fail(const char *what) {
  fprintf(stderr, "train_gpu: %s\n", what);
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 5) return fail("give a text, a number of steps, a checkpoint to start from, and one to write");
  size_t size = 0, bytes = 0, header_bytes = 0;
  const unsigned char *text = lathe_file_map(argv[1], &size), *start = lathe_file_map(argv[3], &bytes);
  if (text == NULL || size <= T + 1) return fail("the text cannot be read, or is too short");
  gpt library;
  gpt_states on_host, states; /* parameters and AdamW's moments */
  void *block = lathe_memory_get(gpt_place_states(NULL, &on_host));
  gpt_place_states(block, &on_host);
  const char *header = gpt_file_header(&header_bytes);
  lathe_safetensors from, to;
  if (lathe_safetensors_open(&from, start, bytes) != 0) return fail(from.message);
  lathe_safetensors_layout(&to, header, header_bytes, block, GPT_FILE_BYTES);
  if (lathe_safetensors_copy(&to, &from) != to.count) return fail(from.message);

  lathe_gpu gpu;
  if (lathe_gpu_open(&gpu, 0) != 0) return fail(gpu.message);
  int64_t tokens[B][T + 1];
  float loss;
  gpt_call call = {.dims = {B, T}, .states = &states, .stream = lathe_gpu_stream(&gpu)};
  int32_t error = gpt_init(&library, &gpu.driver, &call.dims, NULL, 0);
  if (error) return fail(gpt_message(error));
  call.workspace_bytes = (size_t)gpt_workspace_bytes(&library);
  call.workspace = lathe_gpu_get(&gpu, call.workspace_bytes);
  void *batch = lathe_gpu_get(&gpu, sizeof tokens), *device_block = lathe_gpu_get(&gpu, gpt_place_device_states(NULL, &states));
  if (batch == NULL || device_block == NULL) return fail("the GPU has not enough memory");
  gpt_place_device_states(device_block, &states);
  call.inputs.tokens = batch;
  call.outputs.loss = lathe_gpu_get(&gpu, sizeof loss);
  call.outputs.grad_norm = lathe_gpu_get(&gpu, sizeof loss);
  call.outputs.learning_rate = lathe_gpu_get(&gpu, sizeof loss);
  error = gpt_copy_states(&library, &call.dims, &states, &on_host, call.stream);
  for (size_t step = 0; !error && step < strtoul(argv[2], NULL, 10); ++step) {
    for (size_t b = 0; b < B; ++b)
      for (size_t t = 0; t <= T; ++t) tokens[b][t] = text[(step * B + b) * T % (size - T) + t];
    if (lathe_gpu_copy(&gpu, batch, tokens, sizeof tokens)) return fail("the GPU is lost");
    error = gpt_run(&library, &call); /* all launches on the stream; the states change in place */
    if (lathe_gpu_copy(&gpu, &loss, call.outputs.loss, sizeof loss)) return fail("the GPU is lost");
    if (!error) printf("step %zu: loss %.9g\n", step + 1, (double)loss);
  }
  if (!error) error = gpt_copy_states(&library, &call.dims, &on_host, &states, call.stream);
  if (error) return fail(gpt_message(error));
  FILE *file = fopen(argv[4], "wb");
  if (file == NULL || fwrite(header, 1, header_bytes, file) != header_bytes ||
      fwrite(block, 1, GPT_FILE_BYTES, file) != GPT_FILE_BYTES || fclose(file) != 0)
    return fail("the checkpoint cannot be written");
  gpt_release(&library);
  lathe_gpu_close(&gpu); /* with all memory of the context */
  return 0;
}
