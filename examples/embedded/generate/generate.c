/* Continues a prompt of token ids with a Llama-like model, by the most likely tokens:
     generate COUNT "1 5 9" MODEL.safetensors ...   prints COUNT new ids */
#include <stdio.h>
#include <stdlib.h>

#include "lathe_memory.h"
#include "lathe_pool.h"
#include "lathe_safetensors.h"
#include "lm.h"

enum { most = 64 }; /* tokens of the prompt and of the new text: the size of the cache, at most that of --max */

static int fail(const char *what, const char *why) {
  fprintf(stderr, "generate: %s: %s\n", what, why);
  return 1;
}

/* Copies the parameters from the files into the block of states. Returns the size of the vocabulary; 0 on errors. */
static size_t load(void *block, char **files, int count) {
  lathe_safetensors states, file;
  lathe_tensor table;
  size_t bytes = 0;
  const char *header = lm_file_header(&bytes);
  lathe_safetensors_layout(&states, header, bytes, block, LM_FILE_BYTES);
  int64_t copied = 0;
  for (int i = 0; i < count; ++i) {
    void *mapped = lathe_file_map(files[i], &bytes);
    if (mapped == NULL) return fail(files[i], "cannot be read"), 0;
    const int error = lathe_safetensors_open(&file, mapped, bytes);
    const int64_t now = error ? -1 : lathe_safetensors_copy(&states, &file);
    if (now < 0) return fail(files[i], file.message), 0;
    copied += now;
    lathe_file_unmap(mapped, bytes);
  }
  if (copied != states.count) return fail(files[count - 1], file.message), 0;
  return lathe_safetensors_get(&states, "model.embed_tokens.weight", &table) ? (size_t)table.shape[0] : 0;
}

static int64_t likeliest(const float *logits, size_t count) {
  size_t best = 0;
  for (size_t i = 1; i < count; ++i)
    if (logits[i] > logits[best]) best = i;
  return (int64_t)best;
}

int main(int argc, char **argv) {
  if (argc < 4) return fail("usage", "give a count, token ids and the files of a model");
  int64_t tokens[most], length = 0, token, position, count = atoi(argv[1]);
  for (char *at = argv[2], *end; length < most; at = end, ++length) {
    tokens[length] = strtol(at, &end, 10);
    if (end == at) break;
  }
  if (length == 0 || count < 1 || length + count > most) return fail(argv[2], "the text is empty or too long");
  const int64_t last = length - 1;
  lm library;
  lm_states states;
  lathe_pool pool;
  lm_dims dims = {.T = length, .capacity = most, .length = length};
  void *block = lathe_memory_get(lm_place_states(&dims, NULL, &states)); /* parameters, keys and values */
  if (block == NULL || lathe_pool_start(&pool, 0) != 0) return fail("start", "no memory or threads");
  lm_place_states(&dims, block, &states);
  int32_t error = lm_init(&library, &dims, NULL, 0); /* the states come from files; the cache is zero */
  if (error) return fail("init", lm_message(error));
  const size_t vocabulary = load(block, argv + 3, argc - 3);
  if (vocabulary == 0) return 1;
  float *logits = lathe_memory_get(vocabulary * sizeof(float));
  const size_t bytes = (size_t)lm_workspace_bytes(&library, pool.workers.count);
  void *workspace = lathe_memory_get(bytes);
  const lm_prompt_call prompt = {dims, {tokens, &last}, &states, {logits}, workspace, bytes, &pool.workers};
  error = lm_prompt_run(&library, &prompt);
  lm_step_call step = {dims, {&token, &position}, &states, {logits}, workspace, bytes, &pool.workers};
  for (; !error && count > 0; --count) {
    token = likeliest(logits, vocabulary);
    printf("%lld%c", (long long)token, count > 1 ? ' ' : '\n');
    position = step.dims.length++; /* where the token goes; the cache has one more afterwards */
    if (count > 1) error = lm_step_run(&library, &step);
  }
  lathe_pool_stop(&pool);
  return error ? fail("run", lm_message(error)) : 0;
}
