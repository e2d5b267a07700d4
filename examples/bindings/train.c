/* Trains the graph of curve.lathe from C99: train examples/bindings/curve.lathe */
#include <lathe/lathe_c.h>

#include <stdio.h>
#include <stdlib.h>

enum { points = 32, steps = 300 };

static void check(lathe_status status) {
  if (status == LATHE_OK) return;
  fprintf(stderr, "%s\n", lathe_last_error(LATHE_ERROR_TEXT));
  exit(1);
}

int main(int count, char** arguments) {
  const char* const path = count > 1 ? arguments[1] : "curve.lathe";
  const char* const names[] = {"lr", "weight_decay"};
  const double values[] = {0.02, 0};
  const char* const weights[] = {"W_hidden", "W_out"};
  const int64_t shape[] = {points, 1}, units[] = {16};
  float x[points], y[points], bias[16], loss;
  lathe_graph *graph, *step;
  lathe_options* options;
  lathe_executable *trainer, *model;
  lathe_parameters* parameters;
  lathe_call *training, *evaluation;
  lathe_array curve = {sizeof(lathe_array), 0, 0, NULL, NULL, 0};
  int i;

  if (lathe_c_abi_version() != LATHE_C_ABI_VERSION) return 1;
  for (i = 0; i < points; ++i) {
    x[i] = (float)(2 * i + 1) / points - 1; /* from -1 to 1 */
    y[i] = x[i] * x[i];
  }
  for (i = 0; i < 16; ++i) bias[i] = (float)(i - 8) / 8;

  /* The training step and the model work on one store of parameters. */
  check(lathe_graph_load(path, &graph));
  check(lathe_graph_training_step(graph, "loss", "adamw", names, values, 2, &step));
  check(lathe_parameters_create(&parameters));
  for (i = 0; i < 2; ++i)
    check(lathe_parameters_init(parameters, graph, weights[i], "xavier_uniform", 1, 0, 7, NULL, NULL, 0));
  check(lathe_parameters_set(parameters, "b_hidden", LATHE_F32, 1, units, NULL, bias));
  check(lathe_parameters_init_states(parameters, step, 7, NULL, NULL, 0));
  check(lathe_options_create(&options));
  check(lathe_options_set_parameters(options, parameters));
  check(lathe_compile(step, options, &trainer));
  check(lathe_options_set(options, "mode", "evaluation"));
  check(lathe_compile(graph, options, &model));

  /* Inputs are read in place by each run; results belong to the call. */
  check(lathe_call_create(trainer, &training));
  check(lathe_call_set_input(training, "x", LATHE_F32, 2, shape, NULL, x));
  check(lathe_call_set_input(training, "y", LATHE_F32, 2, shape, NULL, y));
  for (i = 0; i < steps; ++i) {
    lathe_array result = {sizeof(lathe_array), 0, 0, NULL, NULL, 0};
    check(lathe_call_run(training));
    check(lathe_call_output(training, "loss", &result));
    loss = *(const float*)result.data;
    if (i % 100 == 0) printf("step %d: loss %.9g\n", i, loss);
  }

  check(lathe_call_create(model, &evaluation));
  check(lathe_call_set_input(evaluation, "x", LATHE_F32, 2, shape, NULL, x));
  check(lathe_call_set_input(evaluation, "y", LATHE_F32, 2, shape, NULL, y));
  check(lathe_call_run(evaluation));
  check(lathe_call_output(evaluation, "curve", &curve));
  for (i = 0; i < points; i += 8) printf("y(%g) = %.9g\n", x[i], ((const float*)curve.data)[i]);

  check(lathe_call_destroy(training));
  check(lathe_call_destroy(evaluation));
  check(lathe_executable_destroy(trainer));
  check(lathe_executable_destroy(model));
  check(lathe_parameters_destroy(parameters));
  check(lathe_options_destroy(options));
  check(lathe_graph_destroy(step));
  check(lathe_graph_destroy(graph));
  return 0;
}
