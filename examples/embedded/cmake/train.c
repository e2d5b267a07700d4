/* Trains on one sequence with the initial values of the model, and prints the losses; then a softmax. */
#include <stdio.h>

#include "gpt.h"
#include "lathe_memory.h"
#include "softmax.h"

int main(void) {
  gpt library;
  gpt_states states;
  gpt_place_states(lathe_memory_get(GPT_FILE_BYTES), &states);
  int64_t tokens[9] = {3, 1, 4, 1, 5, 9, 2, 6, 5};
  float loss, norm, rate;
  gpt_call call = {.dims = {1, 8},
                   .inputs = {tokens},
                   .states = &states,
                   .outputs = {.loss = &loss, .grad_norm = &norm, .learning_rate = &rate}};
  int32_t error = gpt_init(&library, &call.dims, &states, 1);
  call.workspace_bytes = (size_t)gpt_workspace_bytes(&library, 1);
  call.workspace = lathe_memory_get(call.workspace_bytes);
  for (int step = 1; !error && step <= 30; ++step) {
    error = gpt_run(&library, &call);
    if (step % 10 == 0) printf("step %d: loss %.3f\n", step, (double)loss);
  }
  if (error) return puts(gpt_message(error)), 1;

  softmax other;
  const float x[3] = {0, 0, 0};
  float y[3];
  softmax_call second = {.dims = {3}, .inputs = {x}, .outputs = {y}};
  error = softmax_init(&other, &second.dims);
  second.workspace_bytes = (size_t)softmax_workspace_bytes(&other, 1);
  second.workspace = lathe_memory_get(second.workspace_bytes);
  if (!error) error = softmax_run(&other, &second);
  if (error) return puts(softmax_message(error)), 1;
  printf("softmax %.3f %.3f %.3f\n", (double)y[0], (double)y[1], (double)y[2]);
  return 0;
}
