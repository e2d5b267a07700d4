#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "ir/support/error.h"
#include "ir/tensor/binding.h"
#include "ir/tensor/op/op.h"
#include "ir/tensor/text/parser.h"
#include "ir/tensor/text/printer.h"
#include "runtime/c_api/caller_arrays.h"
#include "runtime/c_api/handles.h"
#include "runtime/files/file_io.h"
#include "runtime/files/paths.h"

/// Functions of the C API on graphs.
namespace lathe::c_api {

namespace {

TensorText describe(const std::string& name, std::int32_t role, const ir::TensorType& type) {
  TensorText text{.name = name, .type = type.to_string(), .role = role, .dtype = code_of(type.dtype)};
  for (const Dim& dim : type.shape) {
    text.dims.push_back(dim.to_string());
    text.sizes.push_back(dim.value().value_or(-1));
  }
  for (const std::string& dim : text.dims) text.dim_pointers.push_back(dim.c_str());
  return text;
}

std::int32_t role_of(const ir::Node& argument) {
  const std::string_view op = argument.op->name.value;
  return op == "input" ? LATHE_INPUT : op == "parameter" ? LATHE_PARAMETER : LATHE_STATE;
}

const std::vector<TensorText>& tensors_of(const lathe_graph* graph, std::int32_t role) {
  const lathe_graph& from = opened(graph);
  if (role < LATHE_INPUT || role > LATHE_OUTPUT)
    throw UserError(fmt::format("there is no role {}", role), "role_code", "give one of LATHE_INPUT to LATHE_OUTPUT");
  return from.tensors[static_cast<std::size_t>(role)];
}

}  // namespace
}  // namespace lathe::c_api

using namespace lathe;
using namespace lathe::c_api;

lathe_graph::lathe_graph(ir::Graph given) : graph(std::move(given)) {
  for (const ir::ValueId id : graph.arguments()) {
    const ir::Node& node = graph[id];
    const std::int32_t role = role_of(node);
    tensors[static_cast<std::size_t>(role)].push_back(describe(node.name, role, node.type));
    tensors[static_cast<std::size_t>(role)].back().is_updated =
        std::ranges::any_of(graph.updates, [&](const ir::Update& update) { return update.state == id; });
  }
  for (const ir::Output& output : graph.outputs)
    tensors[LATHE_OUTPUT].push_back(describe(output.name, LATHE_OUTPUT, graph[output.value].type));
  const std::vector<std::string> to_give = ir::dims_without_argument(graph);
  for (std::string& name : ir::unbound_dims(graph, {})) {
    const bool is_given = std::ranges::find(to_give, name) != to_give.end();
    dims.push_back({std::move(name), is_given});
  }
}

lathe_status lathe_graph_parse(const char* text, const char* file, lathe_graph** graph) {
  return created(graph, "graph", [&] { return ir::parse_graph(text_of(text, "text"), file ? file : "<text>"); });
}

lathe_status lathe_graph_load(const char* path, lathe_graph** graph) {
  return created(graph, "graph", [&] {
    constexpr std::uint64_t limit = std::uint64_t{1} << 28;
    const std::string file(text_of(path, "path"));
    if (is_folder(file))
      throw UserError(fmt::format("{} is a folder", quote_path(file)), "graph_folder",
                      "write the graph of a model's folder to a file: lathe model DIR -o graph.lathe");
    return ir::parse_graph(read_file(file, limit), file);
  });
}

lathe_status lathe_graph_destroy(lathe_graph* graph) { return destroyed(graph); }

lathe_status lathe_graph_print(const lathe_graph* graph, int32_t locations, char** text) {
  return guarded([&] {
    needed(text, "text") = nullptr;
    if (locations != 0 && locations != 1)
      throw UserError(fmt::format("locations is {}", locations), "flag_value", "give 0 or 1");
    const std::string printed = ir::print(opened(graph).graph, {.locations = locations == 1});
    *text = static_cast<char*>(std::malloc(printed.size() + 1));
    if (!*text) throw std::bad_alloc();
    std::memcpy(*text, printed.c_str(), printed.size() + 1);
  });
}

void lathe_text_free(char* text) { std::free(text); }

lathe_status lathe_graph_count(const lathe_graph* graph, int32_t role, size_t* count) {
  return guarded([&] { needed(count, "count") = tensors_of(graph, role).size(); });
}

lathe_status lathe_graph_tensor(const lathe_graph* graph, int32_t role, size_t index, lathe_tensor_info* info) {
  return guarded([&] {
    const TensorText& tensor = item(tensors_of(graph, role), index, "tensors of this role");
    fill(info,
         lathe_tensor_info{.struct_size = 0,
                           .name = tensor.name.c_str(),
                           .role = tensor.role,
                           .dtype = tensor.dtype,
                           .rank = static_cast<std::int32_t>(tensor.sizes.size()),
                           .is_updated = tensor.is_updated,
                           .sizes = tensor.sizes.data(),
                           .dims = tensor.dim_pointers.data(),
                           .type = tensor.type.c_str()},
         offsetof(lathe_tensor_info, type) + sizeof(lathe_tensor_info::type), "lathe_tensor_info");
  });
}

lathe_status lathe_graph_dim_count(const lathe_graph* graph, size_t* count) {
  return guarded([&] { needed(count, "count") = opened(graph).dims.size(); });
}

lathe_status lathe_graph_dim(const lathe_graph* graph, size_t index, const char** name, int32_t* is_given) {
  return guarded([&] {
    const DimText& dim = item(opened(graph).dims, index, "dims");
    needed(name, "name") = dim.name.c_str();
    if (is_given) *is_given = dim.is_given;
  });
}

lathe_status lathe_dtype_describe(int32_t dtype, const char** name, size_t* bytes) {
  return guarded([&] {
    const DType known = lathe::c_api::dtype_of(dtype);
    if (name) *name = lathe::name(known).data();  // a literal, which ends with a zero
    if (bytes) *bytes = size_in_bytes(known);
  });
}
