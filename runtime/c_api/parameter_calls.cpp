#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "frontend/initial_values.h"
#include "ir/options/init.h"
#include "ir/support/error.h"
#include "ir/support/nearest.h"
#include "runtime/c_api/caller_arrays.h"
#include "runtime/c_api/handles.h"

/// Functions of the C API on stores of parameters and states.
namespace lathe::c_api {

namespace {

/// The distributions by name, with the number of their parameters.
struct Distribution {
  std::string_view name;
  int numbers;
  Init (*make)(double a, double b);
};

constexpr Distribution distributions[] = {
    {"automatic", 0, [](double, double) { return Init::automatic(); }},
    {"constant", 1, [](double a, double) { return Init::constant(a); }},
    {"normal", 2, [](double a, double b) { return Init::normal({.mean = a, .deviation = b}); }},
    {"uniform", 2, [](double a, double b) { return Init::uniform({.low = a, .high = b}); }},
    {"xavier_uniform", 1, [](double a, double) { return Init::xavier_uniform(a); }},
    {"xavier_normal", 1, [](double a, double) { return Init::xavier_normal(a); }},
    {"kaiming_normal", 1, [](double a, double) { return Init::kaiming_normal(a); }},
};

Init init_of(std::string_view name, double a, double b) {
  const auto* const found = std::ranges::find(distributions, name, &Distribution::name);
  if (found == std::end(distributions)) {
    std::vector<std::string_view> names;
    for (const Distribution& distribution : distributions) names.push_back(distribution.name);
    throw UserError(fmt::format("there is no distribution {}", name), "init_options",
                    did_you_mean_or_list(name, names, "the distributions are"));
  }
  if ((found->numbers < 1 && a != 0) || (found->numbers < 2 && b != 0))
    throw UserError(fmt::format("{} does not use a = {}, b = {}", name, a, b), "init_options",
                    "give 0 for a number that the distribution does not have");
  return found->make(a, b);
}

std::string describe(DType dtype, const std::vector<std::int64_t>& shape) {
  return fmt::format("{}{}", lathe::name(dtype), shape_to_string(shape));
}

/// Copies a value to the caller's memory. Throws UserError [argument_dtype], [argument_shape].
void copy_out(const HostTensor& value, std::string_view name, const TensorRef& to) {
  if (value.dtype() != to.dtype)
    throw UserError(fmt::format("{} is {}, the memory given is for {}", name, describe(value.dtype(), value.shape()),
                                describe(to.dtype, to.shape)),
                    "argument_dtype", "give memory of that dtype");
  if (value.shape() != to.shape)
    throw UserError(fmt::format("{} is {}, the memory given is for {}", name, describe(value.dtype(), value.shape()),
                                describe(to.dtype, to.shape)),
                    "argument_shape", "give memory of that shape");
  scatter(value.data(), to);
}

}  // namespace
}  // namespace lathe::c_api

using namespace lathe;
using namespace lathe::c_api;

lathe_status lathe_parameters_create(lathe_parameters** parameters) {
  return created(parameters, "parameters", [] { return Parameters(); });
}

lathe_status lathe_parameters_load(const char* path, lathe_parameters** parameters) {
  return created(parameters, "parameters", [&] { return Parameters::load(text_of(path, "path")); });
}

lathe_status lathe_parameters_destroy(lathe_parameters* parameters) { return destroyed(parameters); }

lathe_status lathe_parameters_save(const lathe_parameters* parameters, const char* path, const char* const* names,
                                   size_t count) {
  return guarded([&] {
    const Parameters& store = opened(parameters).parameters;
    const std::string_view file = text_of(path, "path");
    if (count == 0 && !names) return store.save(file);
    const std::vector<std::string> given = texts_of(names, count, "names");
    const std::set<std::string, std::less<>> chosen(given.begin(), given.end());
    for (const std::string& name : chosen) (void)store.location(name);  // throws for an unknown name
    store.save(file, [&](std::string_view name) { return chosen.contains(name); });
  });
}

lathe_status lathe_parameters_list(lathe_parameters* parameters, size_t* count) {
  return guarded([&] {
    lathe_parameters& given = opened(parameters);
    size_t& number = needed(count, "count");
    given.names = given.parameters.names();
    number = given.names.size();
  });
}

lathe_status lathe_parameters_name(const lathe_parameters* parameters, size_t index, const char** name) {
  return guarded([&] {
    const char*& to = needed(name, "name");
    to = item(opened(parameters).names, index, "names in the list").c_str();
  });
}

lathe_status lathe_parameters_contains(const lathe_parameters* parameters, const char* name, int32_t* contains) {
  return guarded(
      [&] { needed(contains, "contains") = opened(parameters).parameters.contains(text_of(name, "name")); });
}

lathe_status lathe_parameters_view(const lathe_parameters* parameters, const char* name, lathe_array* array) {
  return guarded([&] { fill(array, opened(parameters).parameters.get(text_of(name, "name"))); });
}

lathe_status lathe_parameters_get(const lathe_parameters* parameters, const char* name, int32_t dtype, int32_t rank,
                                  const int64_t* shape, const int64_t* strides, void* data) {
  return guarded([&] {
    const std::string_view key = text_of(name, "name");
    const Parameters& store = opened(parameters).parameters;
    const TensorRef to = lathe::c_api::writable_view_of(key, {dtype, rank, shape, strides}, data);
    copy_out(store.snapshot(key), key, to);
  });
}

lathe_status lathe_parameters_set(lathe_parameters* parameters, const char* name, int32_t dtype, int32_t rank,
                                  const int64_t* shape, const int64_t* strides, const void* data) {
  return guarded([&] {
    const std::string_view key = text_of(name, "name");
    Parameters& store = opened(parameters).parameters;
    const ConstTensorRef from = lathe::c_api::view_of(key, {dtype, rank, shape, strides}, data);
    HostTensor value(from.dtype, from.shape);
    gather(from, value.data());
    store.set(key, std::move(value));
  });
}

lathe_status lathe_parameters_erase(lathe_parameters* parameters, const char* name) {
  return guarded([&] { opened(parameters).parameters.erase(text_of(name, "name")); });
}

lathe_status lathe_parameters_init(lathe_parameters* parameters, const lathe_graph* graph, const char* name,
                                   const char* distribution, double a, double b, uint64_t seed,
                                   const char* const* dim_names, const int64_t* dim_sizes, size_t dim_count) {
  return guarded([&] {
    Parameters& store = opened(parameters).parameters;
    const ir::Graph& of = opened(graph).graph;
    const Initializer init{std::string(text_of(name, "name")), init_of(text_of(distribution, "distribution"), a, b)};
    const DimBindings dims = dims_of(of, dim_names, dim_sizes, dim_count);
    store.set(init.name, initial_value(of, init.name, {&init, 1}, seed, dims));
  });
}

lathe_status lathe_parameters_init_states(lathe_parameters* parameters, const lathe_graph* graph, uint64_t seed,
                                          const char* const* dim_names, const int64_t* dim_sizes, size_t dim_count) {
  return guarded([&] {
    Parameters& store = opened(parameters).parameters;
    const ir::Graph& of = opened(graph).graph;
    store.set(initial_states(of, seed, dims_of(of, dim_names, dim_sizes, dim_count)));
  });
}
