#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "ir/support/error.h"
#include "ir/support/nearest.h"
#include "ir/tensor/binding.h"
#include "runtime/c_api/caller_arrays.h"
#include "runtime/c_api/handles.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/target.h"

/// Functions of the C API that compile.
namespace lathe::c_api {

namespace {

[[noreturn]] void wrong_value(std::string_view option, std::string_view value, std::string_view known) {
  throw UserError(fmt::format("option {} is '{}'", option, value), "option_value", fmt::format("give {}", known));
}

/// Returns the value of a name.
template <class T, std::size_t count>
T one_of(std::string_view option, std::string_view value, const std::pair<std::string_view, T> (&known)[count]) {
  for (const auto& [name, enumerator] : known)
    if (name == value) return enumerator;
  std::string names;
  for (const auto& [name, enumerator] : known) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
  wrong_value(option, value, names);
}

bool flag(std::string_view option, std::string_view value) {
  return one_of<bool>(option, value, {{"true", true}, {"false", false}});
}

template <class T>
T number(std::string_view option, std::string_view value) {
  T result = 0;
  const char* const start = std::to_address(value.begin());
  const char* const end = start + value.size();
  const auto [rest, error] = std::from_chars(start, end, result);
  if (value.empty() || rest != end || error != std::errc()) wrong_value(option, value, "a whole number");
  return result;
}

struct Option {
  std::string_view name;
  void (*set)(lathe_options& options, std::string_view name, std::string_view value);
};

constexpr Option known_options[] = {
    {"target", [](auto& to, auto, auto value) { to.options.target = Target::named(value); }},
    {"threads", [](auto& to, auto name, auto value) { to.options.threads = number<int>(name, value); }},
    {"mode",
     [](auto& to, auto name, auto value) {
       to.options.mode = one_of<Mode>(name, value, {{"training", Mode::training}, {"evaluation", Mode::evaluation}});
     }},
    {"cache", [](auto& to, auto, auto value) { to.cache = value; }},
    {"share_states", [](auto& to, auto name, auto value) { to.options.share_states = flag(name, value); }},
    {"own_threads", [](auto& to, auto name, auto value) { to.options.own_threads = flag(name, value); }},
    {"find_nan", [](auto& to, auto name, auto value) { to.options.find_nan = flag(name, value); }},
    {"attention",
     [](auto& to, auto name, auto value) {
       to.options.lower.attention = one_of<AttentionFusion>(name, value,
                                                            {{"automatic", AttentionFusion::automatic},
                                                             {"off", AttentionFusion::off},
                                                             {"required", AttentionFusion::required}});
     }},
    {"packed_bytes",
     [](auto& to, auto name, auto value) { to.options.lower.packed_bytes = number<std::int64_t>(name, value); }},
};

void set_option(lathe_options& options, std::string_view name, std::string_view value) {
  const auto* const found = std::ranges::find(known_options, name, &Option::name);
  if (found == std::end(known_options)) {
    std::vector<std::string_view> names;
    for (const Option& option : known_options) names.push_back(option.name);
    throw UserError(fmt::format("there is no option {}", name), "option_unknown",
                    did_you_mean_or_list(name, names, "the options are"));
  }
  found->set(options, name, value);
}

void set_size(DimBindings& dims, const char* dim, std::int64_t size) {
  const std::string_view name = text_of(dim, "dim");
  if (size < 0) throw UserError(fmt::format("the size {} is {}", name, size), "dim_negative", "give 0 or more");
  dims.insert_or_assign(std::string(name), size);
}

/// Opens the folder of compiled code; an empty path is none.
std::unique_ptr<DiskCache> open_cache(const std::string& folder) {
  if (folder.empty()) return nullptr;
  auto cache = std::make_unique<DiskCache>(folder);
  if (!cache->enabled())
    throw UserError(fmt::format("the cache cannot be used: {}", cache->disabled_reason()), "cache_folder",
                    "give a folder of your own, to which others cannot write");
  return cache;
}

Executable compiled(const ir::Graph& graph, const lathe_options* given) {
  if (!given) return compile(graph);
  const lathe_options& from = opened(given);
  const std::vector<std::string> unknowns = ir::unbound_dims(graph, {});
  for (const DimBindings* dims : {&from.options.reserve, &from.options.sizes})
    for (const auto& [name, size] : *dims) check_dim(unknowns, name, size);
  const std::unique_ptr<DiskCache> cache = open_cache(from.cache);
  CompileOptions options = from.options;
  options.cache = cache.get();
  return compile(graph, options);
}

}  // namespace
}  // namespace lathe::c_api

using namespace lathe;
using namespace lathe::c_api;

lathe_status lathe_options_create(lathe_options** options) {
  return created(options, "options", [] { return lathe_options(); });
}

lathe_status lathe_options_destroy(lathe_options* options) { return destroyed(options); }

lathe_status lathe_options_set(lathe_options* options, const char* name, const char* value) {
  return guarded([&] { set_option(opened(options), text_of(name, "name"), text_of(value, "value")); });
}

lathe_status lathe_options_reserve(lathe_options* options, const char* dim, int64_t size) {
  return guarded([&] { set_size(opened(options).options.reserve, dim, size); });
}

lathe_status lathe_options_fix(lathe_options* options, const char* dim, int64_t size) {
  return guarded([&] { set_size(opened(options).options.sizes, dim, size); });
}

lathe_status lathe_options_set_parameters(lathe_options* options, const lathe_parameters* parameters) {
  return guarded([&] { opened(options).options.parameters = opened(parameters).parameters; });
}

lathe_status lathe_compile(const lathe_graph* graph, const lathe_options* options, lathe_executable** executable) {
  return created(executable, "executable", [&] { return compiled(opened(graph).graph, options); });
}

lathe_status lathe_executable_destroy(lathe_executable* executable) { return destroyed(executable); }

lathe_status lathe_executable_parameters(const lathe_executable* executable, lathe_parameters** parameters) {
  return created(parameters, "parameters", [&] { return opened(executable).executable->parameters(); });
}

lathe_status lathe_executable_use(lathe_executable* executable, const lathe_parameters* parameters) {
  return guarded([&] { opened(executable).executable->use(opened(parameters).parameters); });
}
