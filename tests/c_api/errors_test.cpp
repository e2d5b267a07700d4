#include <catch2/catch.hpp>
#include <limits>
#include <string>

#include "tests/c_api/support.h"

/// Every error of the C API itself, and how errors are reported.
using namespace lathe::test;

namespace {

std::string error(int part) { return lathe_last_error(part); }

/// Checks that a call fails because of a pointer.
void check_null(lathe_status status) {
  CHECK(label_of(status) == "null_argument");
  CHECK(error(LATHE_ERROR_MESSAGE).ends_with(" is NULL"));
}

std::string graph_file() { return source_path("examples/bindings/curve.lathe").string(); }

}  // namespace

TEST_CASE("c api: an error of a graph has its message, label, hint and line") {
  const std::string text = "graph @g(input %x: f32[n, 4]) {\n  %1 = view %x {shape=[n, 2, 3]}\n  output \"y\" %1\n}";
  lathe_graph* graph = nullptr;
  CHECK(lathe_graph_parse(text.c_str(), "odd.lathe", &graph) == LATHE_USER_ERROR);
  CHECK(graph == nullptr);
  CHECK(error(LATHE_ERROR_LABEL) == "view_numel");
  CHECK(error(LATHE_ERROR_FILE) == "odd.lathe");
  CHECK(lathe_last_error_line() == 2);
  CHECK(error(LATHE_ERROR_MESSAGE) == "view: the elements of x: f32[n, 4] do not fit [n, 2, 3]");
  CHECK(error(LATHE_ERROR_HINT) == "4 != 2 * 3 = 6 per (n); did you mean 2 instead of 3?");
  CHECK(error(LATHE_ERROR_TEXT) ==
        "odd.lathe:2: " + error(LATHE_ERROR_MESSAGE) + "  [view_numel]\n  " + error(LATHE_ERROR_HINT));
  CHECK(lathe_last_error_status() == LATHE_USER_ERROR);
  CHECK(lathe_last_error(-1) == nullptr);
  CHECK(lathe_last_error(5) == nullptr);
}

TEST_CASE("c api: a syntax error has its line") {
  lathe_graph* graph = nullptr;
  CHECK(lathe_graph_parse("graph @g() {\n  output y %1\n}", nullptr, &graph) == LATHE_PARSE_ERROR);
  CHECK(error(LATHE_ERROR_LABEL) == "parse_error");
  CHECK(error(LATHE_ERROR_FILE) == "<text>");
  CHECK(lathe_last_error_line() == 2);
  CHECK(error(LATHE_ERROR_MESSAGE).find("<text>") == std::string::npos);
  CHECK(error(LATHE_ERROR_TEXT).find("<text>:2:10: " + error(LATHE_ERROR_MESSAGE)) == 0);
}

TEST_CASE("c api: success keeps the last error") {
  CHECK(label_of(lathe_graph_load(nullptr, nullptr)) == "null_argument");
  const auto graph = parsed(small_graph);
  CHECK(error(LATHE_ERROR_LABEL) == "null_argument");
  CHECK(error(LATHE_ERROR_TEXT) == "graph is NULL  [null_argument]\n  give a pointer to an object");
  CHECK(lathe_last_error_line() == 0);
}

TEST_CASE("c api: NULL graphs and texts") {
  const auto graph = parsed(small_graph);
  lathe_graph *g = graph.get(), *made_graph = nullptr;
  lathe_tensor_info info{};
  info.struct_size = sizeof(info);
  std::size_t count = 0;
  std::int32_t flag = 0;
  char* text = nullptr;
  const char* name = nullptr;
  const char* const names[] = {nullptr};
  const double number = 1;
  const std::string file = graph_file();
  check_null(lathe_graph_parse(nullptr, nullptr, &made_graph));
  check_null(lathe_graph_parse(small_graph, nullptr, nullptr));
  check_null(lathe_graph_load(nullptr, &made_graph));
  check_null(lathe_graph_load(file.c_str(), nullptr));
  check_null(lathe_graph_differentiate(nullptr, nullptr, 0, nullptr, 0, &made_graph));
  check_null(lathe_graph_differentiate(g, nullptr, 1, nullptr, 0, &made_graph));
  check_null(lathe_graph_differentiate(g, names, 1, nullptr, 0, &made_graph));
  check_null(lathe_graph_differentiate(g, nullptr, 0, nullptr, 1, &made_graph));
  check_null(lathe_graph_differentiate(g, nullptr, 0, nullptr, 0, nullptr));
  check_null(lathe_graph_training_step(nullptr, "sum", "sgd", nullptr, nullptr, 0, &made_graph));
  check_null(lathe_graph_training_step(g, nullptr, "sgd", nullptr, nullptr, 0, &made_graph));
  check_null(lathe_graph_training_step(g, "sum", nullptr, nullptr, nullptr, 0, &made_graph));
  check_null(lathe_graph_training_step(g, "sum", "sgd", nullptr, &number, 1, &made_graph));
  check_null(lathe_graph_training_step(g, "sum", "sgd", names, &number, 1, &made_graph));
  check_null(lathe_graph_training_step(g, "sum", "sgd", nullptr, nullptr, 0, nullptr));
  check_null(lathe_graph_print(nullptr, 0, &text));
  check_null(lathe_graph_print(g, 0, nullptr));
  check_null(lathe_graph_count(nullptr, LATHE_INPUT, &count));
  check_null(lathe_graph_count(g, LATHE_INPUT, nullptr));
  check_null(lathe_graph_tensor(nullptr, LATHE_INPUT, 0, &info));
  check_null(lathe_graph_tensor(g, LATHE_INPUT, 0, nullptr));
  check_null(lathe_graph_dim_count(nullptr, &count));
  check_null(lathe_graph_dim_count(g, nullptr));
  check_null(lathe_graph_dim(nullptr, 0, &name, &flag));
  check_null(lathe_graph_dim(g, 0, nullptr, &flag));
  CHECK((!made_graph && !text && !name));
}

TEST_CASE("c api: NULL options and executables") {
  SmallCall small;
  const auto options = made<lathe_options>(lathe_options_create);
  const lathe_graph* g = small.graph.get();
  lathe_parameters *p = small.parameters.get(), *made_parameters = nullptr;
  lathe_executable *e = small.executable.get(), *made_executable = nullptr;
  check_null(lathe_options_create(nullptr));
  check_null(lathe_options_set(nullptr, "mode", "training"));
  check_null(lathe_options_set(options.get(), nullptr, "training"));
  check_null(lathe_options_set(options.get(), "mode", nullptr));
  check_null(lathe_options_reserve(nullptr, "n", 1));
  check_null(lathe_options_reserve(options.get(), nullptr, 1));
  check_null(lathe_options_fix(nullptr, "n", 1));
  check_null(lathe_options_fix(options.get(), nullptr, 1));
  check_null(lathe_options_set_parameters(nullptr, p));
  check_null(lathe_options_set_parameters(options.get(), nullptr));
  check_null(lathe_compile(nullptr, options.get(), &made_executable));
  check_null(lathe_compile(g, options.get(), nullptr));
  check_null(lathe_executable_parameters(nullptr, &made_parameters));
  check_null(lathe_executable_parameters(e, nullptr));
  check_null(lathe_executable_use(nullptr, p));
  check_null(lathe_executable_use(e, nullptr));
  CHECK((!made_executable && !made_parameters));
}

TEST_CASE("c api: NULL calls and arguments") {
  SmallCall small;
  lathe_call *call = small.call.get(), *made_call = nullptr;
  const lathe_executable* e = small.executable.get();
  lathe_array array = empty_array();
  const std::int64_t shape[] = {3};
  check_null(lathe_call_create(nullptr, &made_call));
  check_null(lathe_call_create(e, nullptr));
  check_null(lathe_call_clear(nullptr));
  check_null(lathe_call_set_input(nullptr, "x", LATHE_F32, 1, shape, nullptr, small.x));
  check_null(lathe_call_set_input(call, nullptr, LATHE_F32, 1, shape, nullptr, small.x));
  check_null(lathe_call_set_input(call, "x", LATHE_F32, 1, nullptr, nullptr, small.x));
  check_null(lathe_call_set_input(call, "x", LATHE_F32, 1, shape, nullptr, nullptr));
  check_null(lathe_call_set_output(nullptr, "y", LATHE_F32, 1, shape, nullptr, small.x));
  check_null(lathe_call_set_output(call, nullptr, LATHE_F32, 1, shape, nullptr, small.x));
  check_null(lathe_call_set_output(call, "y", LATHE_F32, 1, nullptr, nullptr, small.x));
  check_null(lathe_call_set_output(call, "y", LATHE_F32, 1, shape, nullptr, nullptr));
  check_null(lathe_call_set_dim(nullptr, "n", 1));
  check_null(lathe_call_set_dim(call, nullptr, 1));
  check_null(lathe_call_run(nullptr));
  check_null(lathe_call_output(nullptr, "y", &array));
  check_null(lathe_call_output(call, nullptr, &array));
  CHECK(!made_call);
  check_ok(lathe_call_run(call));  // the failed calls changed nothing
}

TEST_CASE("c api: NULL parameters") {
  SmallCall small;
  lathe_parameters *p = small.parameters.get(), *made_parameters = nullptr;
  lathe_graph* g = small.graph.get();
  lathe_array array = empty_array();
  std::size_t count = 0;
  std::int32_t flag = 0;
  const char* name = nullptr;
  const char* const names[] = {"n", nullptr};
  const std::int64_t shape[] = {3};
  float w[3] = {};
  check_null(lathe_parameters_create(nullptr));
  check_null(lathe_parameters_load(nullptr, &made_parameters));
  check_null(lathe_parameters_load("x.safetensors", nullptr));
  check_null(lathe_parameters_save(nullptr, "x.safetensors", nullptr, 0));
  check_null(lathe_parameters_save(p, nullptr, nullptr, 0));
  check_null(lathe_parameters_save(p, "x.safetensors", nullptr, 1));
  check_null(lathe_parameters_save(p, "x.safetensors", names, 2));
  check_null(lathe_parameters_list(nullptr, &count));
  check_null(lathe_parameters_list(p, nullptr));
  check_null(lathe_parameters_name(nullptr, 0, &name));
  check_null(lathe_parameters_name(p, 0, nullptr));
  check_null(lathe_parameters_contains(nullptr, "w", &flag));
  check_null(lathe_parameters_contains(p, nullptr, &flag));
  check_null(lathe_parameters_contains(p, "w", nullptr));
  check_null(lathe_parameters_view(nullptr, "w", &array));
  check_null(lathe_parameters_view(p, nullptr, &array));
  check_null(lathe_parameters_view(p, "w", nullptr));
  check_null(lathe_parameters_get(nullptr, "w", LATHE_F32, 1, shape, nullptr, w));
  check_null(lathe_parameters_get(p, nullptr, LATHE_F32, 1, shape, nullptr, w));
  check_null(lathe_parameters_get(p, "w", LATHE_F32, 1, nullptr, nullptr, w));
  check_null(lathe_parameters_get(p, "w", LATHE_F32, 1, shape, nullptr, nullptr));
  check_null(lathe_parameters_set(nullptr, "w", LATHE_F32, 1, shape, nullptr, w));
  check_null(lathe_parameters_set(p, nullptr, LATHE_F32, 1, shape, nullptr, w));
  check_null(lathe_parameters_set(p, "w", LATHE_F32, 1, nullptr, nullptr, w));
  check_null(lathe_parameters_set(p, "w", LATHE_F32, 1, shape, nullptr, nullptr));
  check_null(lathe_parameters_erase(nullptr, "w"));
  check_null(lathe_parameters_erase(p, nullptr));
  check_null(lathe_parameters_init(nullptr, g, "w", "automatic", 0, 0, 1, nullptr, nullptr, 0));
  check_null(lathe_parameters_init(p, nullptr, "w", "automatic", 0, 0, 1, nullptr, nullptr, 0));
  check_null(lathe_parameters_init(p, g, nullptr, "automatic", 0, 0, 1, nullptr, nullptr, 0));
  check_null(lathe_parameters_init(p, g, "w", nullptr, 0, 0, 1, nullptr, nullptr, 0));
  check_null(lathe_parameters_init(p, g, "w", "automatic", 0, 0, 1, names, nullptr, 1));
  check_null(lathe_parameters_init(p, g, "w", "automatic", 0, 0, 1, nullptr, shape, 1));
  check_null(lathe_parameters_init_states(nullptr, g, 1, nullptr, nullptr, 0));
  check_null(lathe_parameters_init_states(p, nullptr, 1, nullptr, nullptr, 0));
  CHECK(!made_parameters);
  CHECK(value_of(p, "w") == std::vector<float>{1, 2, 3});
}

TEST_CASE("c api: NULL tensors of DLPack") {
  SmallCall small;
  const lathe_parameters* given = small.parameters.get();
  lathe_parameters* p = small.parameters.get();
  DLManagedTensor* tensor = nullptr;
  check_null(lathe_call_set_input_dlpack(small.call.get(), "x", nullptr));
  check_null(lathe_call_set_output_dlpack(small.call.get(), "y", nullptr));
  check_null(lathe_call_take_output_dlpack(nullptr, "y", &tensor));
  check_null(lathe_call_take_output_dlpack(small.call.get(), nullptr, &tensor));
  check_null(lathe_call_take_output_dlpack(small.call.get(), "y", nullptr));
  check_null(lathe_parameters_set_dlpack(p, "w", nullptr));
  check_null(lathe_parameters_share_dlpack(nullptr, "w", &tensor));
  check_null(lathe_parameters_share_dlpack(p, nullptr, &tensor));
  check_null(lathe_parameters_share_dlpack(p, "w", nullptr));
  CHECK(!tensor);
  CHECK(value_of(given, "w") == std::vector<float>{1, 2, 3});
}

TEST_CASE("c api: NULL may be destroyed") {
  check_ok(lathe_graph_destroy(nullptr));
  check_ok(lathe_options_destroy(nullptr));
  check_ok(lathe_executable_destroy(nullptr));
  check_ok(lathe_call_destroy(nullptr));
  check_ok(lathe_parameters_destroy(nullptr));
  lathe_text_free(nullptr);
}

TEST_CASE("c api: a handle of another kind") {
  SmallCall small;
  void* graph = small.graph.get();
  std::size_t count = 0;
  CHECK(label_of(lathe_call_run(static_cast<lathe_call*>(graph))) == "handle_kind");
  CHECK(error(LATHE_ERROR_MESSAGE) == "the handle is no lathe_call");
  CHECK(label_of(lathe_parameters_list(static_cast<lathe_parameters*>(graph), &count)) == "handle_kind");
  CHECK(label_of(lathe_executable_destroy(static_cast<lathe_executable*>(graph))) == "handle_kind");
  CHECK(label_of(lathe_options_set(static_cast<lathe_options*>(graph), "mode", "training")) == "handle_kind");
  void* call = small.call.get();
  CHECK(label_of(lathe_graph_destroy(static_cast<lathe_graph*>(call))) == "handle_kind");
  check_ok(lathe_call_run(small.call.get()));
}

TEST_CASE("c api: unknown codes, indices, flags and struct sizes") {
  SmallCall small;
  const lathe_graph* graph = small.graph.get();
  std::size_t count = 0;
  const char* name = nullptr;
  char* text = nullptr;
  lathe_tensor_info info{};
  info.struct_size = sizeof(info);
  for (const int code : {-1, 11, 1 << 30}) {
    CHECK(label_of(lathe_dtype_describe(code, &name, &count)) == "dtype_code");
    CHECK(label_of(lathe_call_set_input(small.call.get(), "x", code, 2, small.x_shape, nullptr, small.x)) ==
          "dtype_code");
  }
  for (const int role : {-1, 4}) {
    CHECK(label_of(lathe_graph_count(graph, role, &count)) == "role_code");
    CHECK(label_of(lathe_graph_tensor(graph, role, 0, &info)) == "role_code");
  }
  CHECK(label_of(lathe_graph_tensor(graph, LATHE_INPUT, 1, &info)) == "list_index");
  CHECK(error(LATHE_ERROR_MESSAGE) == "index 1 of 1 tensors of this role");
  CHECK(label_of(lathe_graph_dim(graph, 1, &name, nullptr)) == "list_index");
  CHECK(label_of(lathe_parameters_name(small.parameters.get(), 0, &name)) == "list_index");  // no list yet
  CHECK(label_of(lathe_graph_print(graph, 2, &text)) == "flag_value");
  for (const std::size_t size : {std::size_t{0}, sizeof(info) - 1, std::size_t{5000}}) {
    info.struct_size = size;
    CHECK(label_of(lathe_graph_tensor(graph, LATHE_INPUT, 0, &info)) == "struct_size");
    lathe_array array = empty_array();
    array.struct_size = size == sizeof(info) - 1 ? sizeof(array) - 1 : size;
    CHECK(label_of(lathe_parameters_view(small.parameters.get(), "w", &array)) == "struct_size");
    CHECK(array.data == nullptr);
  }
}

TEST_CASE("c api: wrong shapes, names and dtypes of arguments") {
  SmallCall small;
  lathe_call* call = small.call.get();
  std::int64_t shape[40] = {2, -3};
  CHECK(label_of(lathe_call_set_input(call, "x", LATHE_F32, -1, shape, nullptr, small.x)) == "tensor_rank");
  CHECK(label_of(lathe_call_set_input(call, "x", LATHE_F32, 33, shape, nullptr, small.x)) == "tensor_rank");
  CHECK(label_of(lathe_call_set_input(call, "x", LATHE_F32, 2, shape, nullptr, small.x)) == "host_tensor_shape");
  CHECK(error(LATHE_ERROR_MESSAGE) == "dimension -3 of shape [2, -3] is negative");
  shape[0] = shape[1] = std::int64_t{1} << 62;
  CHECK(label_of(lathe_call_set_input(call, "x", LATHE_F32, 2, shape, nullptr, small.x)) == "host_tensor_shape");
  CHECK(label_of(lathe_call_set_input(call, "xx", LATHE_F32, 2, small.x_shape, nullptr, small.x)) ==
        "argument_unknown");
  CHECK(error(LATHE_ERROR_MESSAGE) == "the executable has no input xx");
  CHECK(label_of(lathe_call_set_input(call, "w", LATHE_F32, 1, small.w_shape, nullptr, small.x)) ==
        "argument_unknown");
  CHECK(label_of(lathe_call_set_output(call, "z", LATHE_F32, 2, small.x_shape, nullptr, small.x)) ==
        "output_unknown");
  check_ok(lathe_call_run(call));  // the failed calls changed nothing

  lathe_array array = empty_array();
  CHECK(label_of(lathe_call_output(call, "z", &array)) == "output_unknown");
  check_ok(lathe_call_set_input(call, "x", LATHE_F64, 2, small.x_shape, nullptr, small.x));
  CHECK(label_of(lathe_call_run(call)) == "argument_dtype");
  check_ok(lathe_call_set_input(call, "x", LATHE_F32, 1, small.x_shape, nullptr, small.x));
  CHECK(label_of(lathe_call_run(call)) == "argument_rank");
  const std::int64_t other[] = {3, 2};
  check_ok(lathe_call_set_input(call, "x", LATHE_F32, 2, other, nullptr, small.x));
  CHECK(label_of(lathe_call_run(call)) == "argument_shape");
  CHECK(label_of(lathe_call_output(call, "y", &array)) == "output_unset");
  const std::int64_t one[] = {1, 3};
  const auto* bytes = reinterpret_cast<const char*>(small.x);
  check_ok(lathe_call_set_input(call, "x", LATHE_F32, 2, one, nullptr, bytes + 1));
  CHECK(label_of(lathe_call_run(call)) == "argument_alignment");
  check_ok(lathe_call_set_input(call, "x", LATHE_F32, 2, small.x_shape, nullptr, small.x));
  check_ok(lathe_call_set_dim(call, "m", 1));
  CHECK(label_of(lathe_call_run(call)) == "dim_unknown");
  check_ok(lathe_call_clear(call));
  CHECK(label_of(lathe_call_run(call)) == "argument_missing");
}

TEST_CASE("c api: outputs in memory that is not theirs") {
  SmallCall small;
  lathe_call* call = small.call.get();
  float y[6] = {}, sum = 0;
  check_ok(lathe_call_set_output(call, "sum", LATHE_F32, 0, nullptr, nullptr, &sum));
  check_ok(lathe_call_set_output(call, "y", LATHE_I32, 2, small.x_shape, nullptr, y));
  CHECK(label_of(lathe_call_run(call)) == "output_type");
  check_ok(lathe_call_set_output(call, "y", LATHE_F32, 2, small.x_shape, nullptr, small.x));
  CHECK(label_of(lathe_call_run(call)) == "output_overlap");
  check_ok(lathe_call_set_output(call, "y", LATHE_F32, 2, small.x_shape, nullptr, y));
  check_ok(lathe_call_run(call));
  CHECK(y[5] == 18);
}

TEST_CASE("c api: unknown options and their values") {
  const auto options = made<lathe_options>(lathe_options_create);
  const auto set = [&](const char* name, const char* value) {
    return label_of(lathe_options_set(options.get(), name, value));
  };
  CHECK(set("thread", "2") == "option_unknown");
  CHECK(error(LATHE_ERROR_HINT) == "did you mean 'threads'?");
  CHECK(set("", "2") == "option_unknown");
  CHECK(set("threads", "two") == "option_value");
  CHECK(error(LATHE_ERROR_MESSAGE) == "option threads is 'two'");
  CHECK(set("threads", "") == "option_value");
  CHECK(set("threads", "2 ") == "option_value");
  CHECK(set("threads", "99999999999") == "option_value");
  CHECK(set("mode", "train") == "option_value");
  CHECK(error(LATHE_ERROR_HINT) == "give training, evaluation");
  CHECK(set("share_states", "yes") == "option_value");
  CHECK(set("own_threads", "1") == "option_value");
  CHECK(set("find_nan", "") == "option_value");
  CHECK(set("attention", "on") == "option_value");
  CHECK(set("target", "x86-64-v9") == "unknown_target");
  CHECK(label_of(lathe_options_reserve(options.get(), "n", -1)) == "dim_negative");
  CHECK(label_of(lathe_options_fix(options.get(), "n", -1)) == "dim_negative");

  const auto graph = parsed(small_graph);
  lathe_executable* executable = nullptr;
  check_ok(lathe_options_reserve(options.get(), "m", 4));
  CHECK(label_of(lathe_compile(graph.get(), options.get(), &executable)) == "dim_unknown");
  const auto fixed = made<lathe_options>(lathe_options_create);
  check_ok(lathe_options_fix(fixed.get(), "d", 3));  // a number already
  CHECK(label_of(lathe_compile(graph.get(), fixed.get(), &executable)) == "dim_unknown");
  const auto negative = made<lathe_options>(lathe_options_create);
  check_ok(lathe_options_set(negative.get(), "threads", "-1"));
  CHECK(label_of(lathe_compile(graph.get(), negative.get(), &executable)) == "thread_count");
  const auto cache = made<lathe_options>(lathe_options_create);
  check_ok(lathe_options_set(cache.get(), "cache", graph_file().c_str()));  // a file
  CHECK(label_of(lathe_compile(graph.get(), cache.get(), &executable)) == "cache_folder");
  CHECK(executable == nullptr);
}

TEST_CASE("c api: unknown files, optimizers and gradients") {
  lathe_graph* made_graph = nullptr;
  lathe_parameters* made_parameters = nullptr;
  const auto graph = made<lathe_graph>(lathe_graph_load, graph_file().c_str());
  CHECK(label_of(lathe_graph_load("missing.lathe", &made_graph)) == "file_open");
  CHECK(label_of(lathe_graph_load(source_path("examples").c_str(), &made_graph)) == "graph_folder");
  CHECK(label_of(lathe_parameters_load("missing.safetensors", &made_parameters)) == "file_open");

  const auto step = [&](const char* loss, const char* optimizer, const char* name, double value) {
    return label_of(lathe_graph_training_step(graph.get(), loss, optimizer, &name, &value, 1, &made_graph));
  };
  CHECK(step("loss", "adagrad", "lr", 1) == "option_value");
  CHECK(step("loss", "adam", "momentum", 1) == "option_unknown");
  CHECK(step("loss", "sgd", "beta1", 1) == "option_unknown");
  CHECK(step("loss", "sgd", "nesterov", 0.5) == "option_value");
  CHECK(step("loss", "sgd", "accumulate", 0) == "option_value");
  CHECK(step("loss", "sgd", "accumulate", std::numeric_limits<double>::quiet_NaN()) == "option_value");
  CHECK(step("loss", "adam", "beta1", 2) == "optimizer_options");
  CHECK(step("curve", "adam", "lr", 1) == "train_loss");
  CHECK(step("lost", "adam", "lr", 1) != "ok");
  const char* const unknown[] = {"W_in"};
  CHECK(label_of(lathe_graph_differentiate(graph.get(), nullptr, 0, unknown, 1, &made_graph)) == "grad_unknown_name");
  CHECK(made_graph == nullptr);
  CHECK(made_parameters == nullptr);
}

TEST_CASE("c api: a run-time check has the line of the graph") {
  const auto graph = parsed(
      "graph @g(input %table: f32[rows, 2], input %ids: i64[n]) {\n"
      "  %1 = gather %table, %ids {dim=0}\n  output \"y\" %1\n}");
  const auto executable = compiled(graph);
  const auto call = made<lathe_call>(lathe_call_create, executable.get());
  const std::int64_t table_shape[] = {2, 2}, ids_shape[] = {2}, ids[] = {0, 7};
  const float table[] = {1, 2, 3, 4};
  check_ok(lathe_call_set_input(call.get(), "table", LATHE_F32, 2, table_shape, nullptr, table));
  check_ok(lathe_call_set_input(call.get(), "ids", LATHE_I64, 1, ids_shape, nullptr, ids));
  CHECK(label_of(lathe_call_run(call.get())) == "index_range");
  CHECK(lathe_last_error_line() == 2);
  CHECK(error(LATHE_ERROR_MESSAGE).find("7") != std::string::npos);
}
