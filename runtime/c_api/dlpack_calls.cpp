#include <fmt/core.h>

#include <mutex>

#include "ir/support/error.h"
#include "ir/support/tensors/dlpack.h"
#include "runtime/c_api/call_tensors.h"
#include "runtime/c_api/handles.h"
#include "runtime/parameters/parameter_store.h"

/// Functions of the C API that take and give arrays of other libraries.
namespace lathe::c_api {

namespace {

using dlpack::ManagedTensor;

struct CallDeleter {
  void operator()(ManagedTensor* tensor) const {
    if (tensor->deleter) tensor->deleter(tensor);
  }
};
using Taken = std::unique_ptr<ManagedTensor, CallDeleter>;

/// Takes ownership of a tensor. It has the layout of DLPack's struct.
Taken taken(DLManagedTensor* tensor) { return Taken(reinterpret_cast<ManagedTensor*>(&needed(tensor, "tensor"))); }

/// Sets an argument and its owner. After an exception both are as they were before.
template <class Views, class View>
void set_borrowed(Views& views, lathe_call::Borrowed& owners, const std::string& name, View view, Taken tensor) {
  std::shared_ptr<ManagedTensor> owner = std::move(tensor);
  std::shared_ptr<ManagedTensor>& kept = owners[name];
  views.insert_or_assign(name, std::move(view));
  kept = std::move(owner);
}

void give(HostTensor value, DLManagedTensor** to) {
  *to = reinterpret_cast<DLManagedTensor*>(to_dlpack(std::move(value)));
}

/// Returns a tensor over the memory of a value on the host. Throws UserError [dlpack_device] if a GPU has it too.
HostTensor shared_value(ParameterStore& store, std::string_view name) {
  const std::lock_guard lock(store.mutex);
  const auto found = store.values.find(name);
  if (found == store.values.end()) store.missing(name);
  StoredTensor& stored = found->second;
  if (stored.device)
    throw UserError(fmt::format("{} is in {}", name, to_string(stored.location())), "dlpack_device",
                    "copy the value with lathe_parameters_get()");
  stored.writes = nullptr;  // the receiver may write the memory
  return stored.host.share();
}

}  // namespace
}  // namespace lathe::c_api

using namespace lathe;
using namespace lathe::c_api;

lathe_status lathe_call_set_input_dlpack(lathe_call* call, const char* name, DLManagedTensor* tensor) {
  return guarded([&] {
    Taken owner = taken(tensor);
    lathe_call& given = opened(call);
    const std::string input = input_name(given, name);
    ConstTensorRef view = view_of(owner->array);
    set_borrowed(given.inputs, given.borrowed_inputs, input, std::move(view), std::move(owner));
  });
}

lathe_status lathe_call_set_output_dlpack(lathe_call* call, const char* name, DLManagedTensor* tensor) {
  return guarded([&] {
    Taken owner = taken(tensor);
    lathe_call& given = opened(call);
    const std::string output = output_name(given, name);
    TensorRef view = writable_view_of(owner->array);
    set_borrowed(given.outputs, given.borrowed_outputs, output, std::move(view), std::move(owner));
    given.has_results = false;
  });
}

lathe_status lathe_call_take_output_dlpack(lathe_call* call, const char* name, DLManagedTensor** tensor) {
  return guarded([&] {
    needed(tensor, "tensor") = nullptr;
    lathe_call& given = opened(call);
    const auto result = owned_result(given, name);
    give(std::move(given.results.extract(result).mapped()), tensor);
  });
}

lathe_status lathe_parameters_set_dlpack(lathe_parameters* parameters, const char* name, DLManagedTensor* tensor) {
  return guarded([&] {
    Taken owner = taken(tensor);
    Parameters& store = opened(parameters).parameters;
    const std::string_view key = text_of(name, "name");
    store.set(key, from_dlpack(owner.release()));
  });
}

lathe_status lathe_parameters_share_dlpack(const lathe_parameters* parameters, const char* name,
                                           DLManagedTensor** tensor) {
  return guarded([&] {
    needed(tensor, "tensor") = nullptr;
    give(shared_value(*opened(parameters).parameters.store(), text_of(name, "name")), tensor);
  });
}
