#include <fmt/core.h>

#include "ir/support/error.h"
#include "runtime/c_api/call_tensors.h"
#include "runtime/c_api/caller_arrays.h"
#include "runtime/c_api/handles.h"

/// Functions of the C API that run executables.
using namespace lathe;
using namespace lathe::c_api;

lathe_status lathe_call_create(const lathe_executable* executable, lathe_call** call) {
  return created(call, "call", [&] { return opened(executable).executable; });
}

lathe_status lathe_call_destroy(lathe_call* call) { return destroyed(call); }

lathe_status lathe_call_clear(lathe_call* call) {
  return guarded([&] {
    lathe_call& given = opened(call);
    given.inputs.clear(), given.outputs.clear(), given.dims.clear(), given.results.clear();
    given.borrowed_inputs.clear(), given.borrowed_outputs.clear();
    given.has_results = false;
  });
}

lathe_status lathe_call_set_input(lathe_call* call, const char* name, int32_t dtype, int32_t rank,
                                  const int64_t* shape, const int64_t* strides, const void* data) {
  return guarded([&] {
    lathe_call& given = opened(call);
    const std::string input = input_name(given, name);
    ConstTensorRef view = lathe::c_api::view_of(input, {dtype, rank, shape, strides}, data);
    given.inputs.insert_or_assign(input, std::move(view));
    given.borrowed_inputs.erase(input);
  });
}

lathe_status lathe_call_set_output(lathe_call* call, const char* name, int32_t dtype, int32_t rank,
                                   const int64_t* shape, const int64_t* strides, void* data) {
  return guarded([&] {
    lathe_call& given = opened(call);
    const std::string output = output_name(given, name);
    TensorRef view = lathe::c_api::writable_view_of(output, {dtype, rank, shape, strides}, data);
    given.outputs.insert_or_assign(output, std::move(view));
    given.borrowed_outputs.erase(output);
    given.has_results = false;
  });
}

lathe_status lathe_call_set_dim(lathe_call* call, const char* dim, int64_t size) {
  return guarded([&] { opened(call).dims.insert_or_assign(std::string(text_of(dim, "dim")), size); });
}

lathe_status lathe_call_run(lathe_call* call) {
  return guarded([&] {
    lathe_call& given = opened(call);
    given.has_results = false;
    if (given.outputs.empty())
      given.executable->run(given.inputs, given.results, given.dims);
    else
      given.executable->run(given.inputs, given.outputs, given.dims);
    given.has_results = given.outputs.empty();
  });
}

lathe_status lathe_call_output(const lathe_call* call, const char* name, lathe_array* array) {
  return guarded([&] { fill(array, owned_result(opened(call), name)->second); });
}
