#pragma once

#include <lathe/lathe_c.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/support/tensors/dlpack.h"
#include "ir/support/tensors/tensors.h"
#include "ir/tensor/graph.h"
#include "runtime/c_api/guarded.h"
#include "runtime/compile.h"
#include "runtime/executable.h"
#include "runtime/parameters/parameters.h"

/// The handles of the C API (include/lathe/lathe_c.h). Each starts with a tag, by which the functions recognize a
/// handle of another kind: many languages pass all handles as untyped pointers.
namespace lathe::c_api {

enum class HandleKind : std::uint64_t { graph = 0x4c61746865000001, options, executable, call, parameters };

template <HandleKind own>
struct Handle {
  static constexpr HandleKind kind = own;
  const HandleKind tag = own;
};

/// Returns "lathe_graph" and the like.
const char* name_of(HandleKind kind);
/// Throws UserError [handle_kind].
[[noreturn]] void throw_handle_kind(HandleKind expected);

/// Returns the object of a handle. Throws UserError [null_argument], [handle_kind].
template <class H>
H& opened(H* handle) {
  H& given = needed(handle, name_of(H::kind));
  if (given.tag != H::kind) throw_handle_kind(H::kind);
  return given;
}

/// Gives a new object to the caller, or NULL if making it fails. `name` is that of the argument.
template <class T, class Make>
lathe_status created(T** handle, std::string_view name, Make make) {
  return guarded([&] {
    needed(handle, name) = nullptr;
    *handle = std::make_unique<T>(make()).release();
  });
}

/// Destroys the object of a handle; NULL is allowed.
template <class H>
lathe_status destroyed(H* handle) {
  return guarded([&] {
    if (handle) delete &opened(handle);
  });
}

/// A named tensor of a graph with the texts that lathe_tensor_info refers to.
struct TensorText {
  std::string name, type;
  std::int32_t role = LATHE_INPUT, dtype = LATHE_F32;
  bool is_updated = false;
  std::vector<std::string> dims = {};
  std::vector<const char*> dim_pointers = {};
  std::vector<std::int64_t> sizes = {};
};

struct DimText {
  std::string name;
  bool is_given;  ///< no argument determines it
};

}  // namespace lathe::c_api

struct lathe_graph : lathe::c_api::Handle<lathe::c_api::HandleKind::graph> {
  explicit lathe_graph(lathe::ir::Graph given);
  lathe::ir::Graph graph;
  std::array<std::vector<lathe::c_api::TensorText>, 4> tensors;  ///< by role
  std::vector<lathe::c_api::DimText> dims;
};

struct lathe_options : lathe::c_api::Handle<lathe::c_api::HandleKind::options> {
  lathe::CompileOptions options;
  std::string cache;  ///< folder; empty: none
};

struct lathe_executable : lathe::c_api::Handle<lathe::c_api::HandleKind::executable> {
  explicit lathe_executable(lathe::Executable compiled)
      : executable(std::make_shared<lathe::Executable>(std::move(compiled))) {}
  std::shared_ptr<lathe::Executable> executable;
};

struct lathe_call : lathe::c_api::Handle<lathe::c_api::HandleKind::call> {
  explicit lathe_call(std::shared_ptr<lathe::Executable> of) : executable(std::move(of)) {}
  using Borrowed = std::map<std::string, std::shared_ptr<lathe::dlpack::ManagedTensor>, std::less<>>;
  std::shared_ptr<lathe::Executable> executable;
  lathe::InputRefs inputs;
  lathe::OutputRefs outputs;
  Borrowed borrowed_inputs, borrowed_outputs;  ///< owners of DLPack memory
  lathe::DimBindings dims;
  lathe::Tensors results;
  bool has_results = false;  ///< the last run was successful and wrote to `results`
};

struct lathe_parameters : lathe::c_api::Handle<lathe::c_api::HandleKind::parameters> {
  explicit lathe_parameters(lathe::Parameters given) : parameters(std::move(given)) {}
  lathe::Parameters parameters;
  std::vector<std::string> names;  ///< of the last lathe_parameters_list()
};
