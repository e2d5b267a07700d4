/* Two libraries of one training step, first and second, train at the same time, each with threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "first.h"
#include "second.h"

/* Threads that live for one loop: the simplest form of parallel_for. */
struct loop { void (*task)(void *, int64_t, int32_t); void *argument; int64_t count, next; };
struct worker { struct loop *loop; int32_t number; };
static void *work(void *of) {
  struct worker *w = of;
  for (;;) {
    int64_t i = __atomic_fetch_add(&w->loop->next, 1, __ATOMIC_RELAXED);
    if (i >= w->loop->count) return NULL;
    w->loop->task(w->loop->argument, i, w->number);
  }
}
static void parallel_for(void *context, int64_t count, void (*task)(void *, int64_t, int32_t), void *argument) {
  struct loop loop = {task, argument, count, 0};
  struct worker workers[2] = {{&loop, 0}, {&loop, 1}};
  pthread_t thread;
  (void)context;
  if (pthread_create(&thread, NULL, work, &workers[1])) abort();
  work(&workers[0]);
  pthread_join(thread, NULL);
}

#define TRAIN(P)                                                                                            \
  static void *P##_train(void *result) {                                                                    \
    lathe_workers workers = {parallel_for, NULL, 2};                                                        \
    P library;                                                                                              \
    P##_states states;                                                                                      \
    int64_t tokens[3 * 17];                                                                                 \
    float loss = 0, norm = 0, rate = 0;                                                                     \
    for (int i = 0; i < 51; ++i) tokens[i] = i * 7 % 31;                                                    \
    void *block = malloc(P##_place_states(NULL, &states));                                                  \
    P##_place_states(block, &states);                                                                       \
    P##_call call = {.dims = {.B = 3, .T = 16}, .inputs = {.tokens = tokens}, .states = &states,            \
                     .outputs = {.loss = &loss, .grad_norm = &norm, .learning_rate = &rate},                \
                     .workers = &workers};                                                                  \
    int32_t error = P##_init(&library, &call.dims, &states, 1);                                             \
    call.workspace_bytes = (size_t)P##_workspace_bytes(&library, 2);                                        \
    call.workspace = malloc(call.workspace_bytes);                                                          \
    for (int i = 0; i < 5 && !error; ++i) error = P##_run(&library, &call);                                 \
    if (error) puts(P##_message(error)), exit(3);                                                           \
    memcpy(result, &loss, sizeof loss);                                                                     \
    free(block), free(call.workspace);                                                                      \
    return NULL;                                                                                            \
  }
TRAIN(first)
TRAIN(second)

int main(void) {
  float a = 0, b = 0;
  pthread_t thread;
  if (pthread_create(&thread, NULL, first_train, &a)) return 4;
  second_train(&b);
  pthread_join(thread, NULL);
  printf("%a %a\n", a, b);
  return a == b && a > 1 && a < 4 ? 0 : 5;
}
