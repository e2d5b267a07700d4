#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <limits>
#include <string>

#include "frontend/initial_values.h"
#include "ir/options/init.h"
#include "ir/tensor/text/parser.h"
#include "tests/c_api/support.h"

using namespace lathe;
using namespace lathe::test;

namespace {

std::string path_of(const std::string& name) {
  return (std::filesystem::temp_directory_path() / (name + std::to_string(::getpid()) + ".safetensors")).string();
}

std::vector<std::string> names_in(lathe_parameters* parameters) {
  std::size_t count = 0;
  check_ok(lathe_parameters_list(parameters, &count));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    check_ok(lathe_parameters_name(parameters, i, &name));
    names.emplace_back(name);
  }
  return names;
}

bool contains(const lathe_parameters* parameters, const char* name) {
  std::int32_t found = -1;
  check_ok(lathe_parameters_contains(parameters, name, &found));
  return found == 1;
}

const std::int64_t square[] = {2, 2};

}  // namespace

TEST_CASE("c api: values are copied in and out, with strides") {
  const auto parameters = made<lathe_parameters>(lathe_parameters_create);
  lathe_parameters* p = parameters.get();
  CHECK(names_in(p).empty());
  float w[] = {1, 2, 3, 4};
  const std::int64_t transposed[] = {1, 2};
  check_ok(lathe_parameters_set(p, "w", LATHE_F32, 2, square, nullptr, w));
  check_ok(lathe_parameters_set(p, "t", LATHE_F32, 2, square, transposed, w));
  w[0] = 9;  // the store has a copy
  CHECK(value_of(p, "w") == std::vector<float>{1, 2, 3, 4});
  CHECK(value_of(p, "t") == std::vector<float>{1, 3, 2, 4});
  CHECK(names_in(p) == std::vector<std::string>{"t", "w"});
  float copy[4] = {};
  check_ok(lathe_parameters_get(p, "w", LATHE_F32, 2, square, nullptr, copy));
  CHECK(std::vector<float>(copy, copy + 4) == std::vector<float>{1, 2, 3, 4});
  check_ok(lathe_parameters_get(p, "w", LATHE_F32, 2, square, transposed, copy));
  CHECK(std::vector<float>(copy, copy + 4) == std::vector<float>{1, 3, 2, 4});
  check_ok(lathe_parameters_erase(p, "t"));
  CHECK_FALSE(contains(p, "t"));
  CHECK(contains(p, "w"));
}

TEST_CASE("c api: values of another dtype, shape or name") {
  SmallCall small;
  lathe_parameters* p = small.parameters.get();
  float w[4] = {};
  lathe_array array = empty_array();
  CHECK(label_of(lathe_parameters_get(p, "w", LATHE_I32, 1, small.w_shape, nullptr, w)) == "argument_dtype");
  CHECK(label_of(lathe_parameters_get(p, "w", LATHE_F32, 2, square, nullptr, w)) == "argument_shape");
  CHECK(label_of(lathe_parameters_get(p, "v", LATHE_F32, 2, square, nullptr, w)) == "argument_unknown");
  CHECK(label_of(lathe_parameters_view(p, "v", &array)) == "argument_unknown");
  CHECK(label_of(lathe_parameters_erase(p, "v")) == "argument_unknown");
  CHECK(label_of(lathe_parameters_set(p, "v", LATHE_F32, 2, square, nullptr, w)) == "argument_unknown");
  CHECK(label_of(lathe_parameters_set(p, "w", LATHE_F32, 2, square, nullptr, w)) == "argument_shape");
  CHECK(label_of(lathe_parameters_set(p, "w", LATHE_F64, 1, small.w_shape, nullptr, w)) == "argument_dtype");
  CHECK(label_of(lathe_parameters_set(p, "w", 77, 1, small.w_shape, nullptr, w)) == "dtype_code");
  CHECK(label_of(lathe_parameters_set(p, "w", LATHE_F32, 40, small.w_shape, nullptr, w)) == "tensor_rank");
  CHECK(value_of(p, "w") == std::vector<float>{1, 2, 3});
}

#ifndef __SANITIZE_ADDRESS__  // AddressSanitizer ends the program instead
TEST_CASE("c api: a value that does not fit in memory") {
  const auto parameters = made<lathe_parameters>(lathe_parameters_create);
  const auto graph = parsed("graph @g(parameter %w: f32[n]) { output \"w\" %w }");
  const char* const names[] = {"n"};
  const std::int64_t sizes[] = {std::int64_t{1} << 60};
  const lathe_status status =
      lathe_parameters_init(parameters.get(), graph.get(), "w", "constant", 1, 0, 0, names, sizes, 1);
  CHECK(status == LATHE_OUT_OF_MEMORY);
  CHECK(lathe_last_error(LATHE_ERROR_LABEL) == std::string("out_of_memory"));
  CHECK_FALSE(contains(parameters.get(), "w"));
}
#endif

TEST_CASE("c api: safetensors files") {
  const std::string file = path_of("all"), some = path_of("some");
  {
    SmallCall small;
    check_ok(lathe_parameters_save(small.parameters.get(), file.c_str(), nullptr, 0));
    const char* const names[] = {"w"};
    check_ok(lathe_parameters_save(small.parameters.get(), some.c_str(), names, 1));
    const char* const unknown[] = {"w", "v"};
    CHECK(label_of(lathe_parameters_save(small.parameters.get(), some.c_str(), unknown, 2)) == "argument_unknown");
    CHECK(label_of(lathe_parameters_save(small.parameters.get(), some.c_str(), names, 0)) == "argument_unknown");
  }
  const auto loaded = made<lathe_parameters>(lathe_parameters_load, file.c_str());
  CHECK(names_in(loaded.get()) == std::vector<std::string>{"runs", "w"});
  CHECK(value_of(loaded.get(), "w") == std::vector<float>{1, 2, 3});
  const auto one = made<lathe_parameters>(lathe_parameters_load, some.c_str());
  CHECK(names_in(one.get()) == std::vector<std::string>{"w"});
  const std::string folder = std::filesystem::temp_directory_path().string();
  CHECK(label_of(lathe_parameters_save(one.get(), (folder + "/no/folder.safetensors").c_str(), nullptr, 0)) ==
        "file_write");
  std::filesystem::remove(file);
  std::filesystem::remove(some);
}

TEST_CASE("c api: initial values are those of the C++ API") {
  const char* const text =
      R"(graph @g(parameter %w: f32[4, k], parameter %b: bf16[4], state %rng: i64[2], state %m: f32[k]) {
  output "w" %w
})";
  const auto graph = parsed(text);
  const ir::Graph same = ir::parse_graph(text);
  const DimBindings dims{{"k", 3}};
  const char* const names[] = {"k"};
  const std::int64_t sizes[] = {3};
  const std::pair<const char*, Init> all[] = {{"automatic", Init::automatic()},
                                              {"constant", Init::constant(0.5)},
                                              {"normal", Init::normal({.mean = 0.5, .deviation = 2})},
                                              {"uniform", Init::uniform({.low = 0.5, .high = 2})},
                                              {"xavier_uniform", Init::xavier_uniform(0.5)},
                                              {"xavier_normal", Init::xavier_normal(0.5)},
                                              {"kaiming_normal", Init::kaiming_normal(0.5)}};
  const auto parameters = made<lathe_parameters>(lathe_parameters_create);
  for (const auto& [name, init] : all) {
    INFO(name);
    const double a = name == std::string("automatic") ? 0 : 0.5;
    const double b = name == std::string("normal") || name == std::string("uniform") ? 2 : 0;
    check_ok(lathe_parameters_init(parameters.get(), graph.get(), "w", name, a, b, 5, names, sizes, 1));
    const Initializer initializer{"w", init};
    const HostTensor expected = initial_value(same, "w", {&initializer, 1}, 5, dims);
    const auto elements = expected.as<float>();
    CHECK(value_of(parameters.get(), "w") == std::vector<float>(elements.begin(), elements.end()));
  }
  check_ok(lathe_parameters_init_states(parameters.get(), graph.get(), 11, names, sizes, 1));
  lathe_array rng = empty_array();
  check_ok(lathe_parameters_view(parameters.get(), "rng", &rng));
  CHECK(static_cast<const std::int64_t*>(rng.data)[0] == 11);
  CHECK(static_cast<const std::int64_t*>(rng.data)[1] == 0);
  CHECK(value_of(parameters.get(), "m") == std::vector<float>{0, 0, 0});
  CHECK_FALSE(contains(parameters.get(), "b"));
}

TEST_CASE("c api: initial values that are not possible") {
  const auto graph =
      parsed("graph @g(input %x: f32[k], parameter %w: f32[4, k], state %m: f32[k]) { output \"x\" %x }");
  const auto parameters = made<lathe_parameters>(lathe_parameters_create);
  const auto init = [&](const char* name, const char* distribution, double a, double b, const char* dim,
                        std::int64_t size) {
    return label_of(
        lathe_parameters_init(parameters.get(), graph.get(), name, distribution, a, b, 1, &dim, &size, 1));
  };
  CHECK(init("w", "gaussian", 0, 1, "k", 2) == "init_options");
  CHECK(init("w", "normal", 0, -1, "k", 2) == "init_options");
  CHECK(init("w", "constant", 1, 1, "k", 2) == "init_options");
  CHECK(init("w", "automatic", 1, 0, "k", 2) == "init_options");
  CHECK(init("v", "automatic", 0, 0, "k", 2) == "argument_unknown");
  CHECK(init("x", "automatic", 0, 0, "k", 2) == "argument_unknown");
  CHECK(init("w", "automatic", 0, 0, "j", 2) == "dim_unknown");
  CHECK(init("w", "automatic", 0, 0, "k", -2) == "dim_negative");
  CHECK(label_of(lathe_parameters_init(parameters.get(), graph.get(), "w", "automatic", 0, 0, 1, nullptr, nullptr,
                                       0)) == "dim_unbound");
  CHECK(label_of(lathe_parameters_init_states(parameters.get(), graph.get(), 1, nullptr, nullptr, 0)) ==
        "dim_unbound");
  CHECK(names_in(parameters.get()).empty());
}
