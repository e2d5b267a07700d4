/* Trains a graph and prints the bits of its losses and parameters: main GRAPH STEPS. A test compares them with those
   of the C++ API. */
#include <lathe/lathe_c.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(lathe_status status) {
  if (status == LATHE_OK) return;
  fprintf(stderr, "%s\n", lathe_last_error(LATHE_ERROR_TEXT));
  exit(1);
}

static void print_bits(const char* name, const lathe_array* array) {
  size_t i;
  printf("%s", name);
  for (i = 0; i < array->bytes / sizeof(float); ++i) {
    uint32_t bits;
    memcpy(&bits, (const float*)array->data + i, sizeof(bits));
    printf(" %08lx", (unsigned long)bits);
  }
  printf("\n");
}

int main(int count, char** arguments) {
  const int64_t shape[] = {8, 1};
  float x[8], y[8];
  lathe_graph *graph, *step;
  lathe_executable* trainer;
  lathe_parameters* parameters;
  lathe_call* call;
  lathe_array array = {sizeof(lathe_array), 0, 0, NULL, NULL, 0};
  size_t parameter_count, i;
  int steps;

  if (count != 3 || lathe_c_abi_version() != LATHE_C_ABI_VERSION) return 2;
  for (i = 0; i < 8; ++i) {
    x[i] = (float)i / 4 - 1;
    y[i] = x[i] * x[i];
  }
  check(lathe_graph_load(arguments[1], &graph));
  check(lathe_graph_training_step(graph, "loss", "adam", NULL, NULL, 0, &step));
  check(lathe_compile(step, NULL, &trainer));
  check(lathe_executable_parameters(trainer, &parameters));
  check(lathe_graph_count(graph, LATHE_PARAMETER, &parameter_count));
  for (i = 0; i < parameter_count; ++i) {
    lathe_tensor_info info;
    info.struct_size = sizeof(info);
    check(lathe_graph_tensor(graph, LATHE_PARAMETER, i, &info));
    check(lathe_parameters_init(parameters, graph, info.name, "normal", 0, 0.5, 3, NULL, NULL, 0));
  }
  check(lathe_parameters_init_states(parameters, step, 3, NULL, NULL, 0));
  check(lathe_call_create(trainer, &call));
  check(lathe_call_set_input(call, "x", LATHE_F32, 2, shape, NULL, x));
  check(lathe_call_set_input(call, "y", LATHE_F32, 2, shape, NULL, y));
  for (steps = atoi(arguments[2]); steps > 0; --steps) {
    check(lathe_call_run(call));
    check(lathe_call_output(call, "loss", &array));
    print_bits("loss", &array);
  }
  for (i = 0; i < parameter_count; ++i) {
    lathe_tensor_info info;
    info.struct_size = sizeof(info);
    check(lathe_graph_tensor(graph, LATHE_PARAMETER, i, &info));
    check(lathe_parameters_view(parameters, info.name, &array));
    print_bits(info.name, &array);
  }
  check(lathe_call_destroy(call));
  check(lathe_parameters_destroy(parameters));
  check(lathe_executable_destroy(trainer));
  check(lathe_graph_destroy(step));
  check(lathe_graph_destroy(graph));
  return 0;
}
