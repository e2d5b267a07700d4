#pragma once

#include <lathe/lathe_c.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/dim.h"
#include "ir/support/tensors/tensor_ref.h"
#include "ir/tensor/graph.h"
#include "runtime/c_api/guarded.h"

/// Conversions between the arguments of C functions and the types of Lathe.
namespace lathe::c_api {

/// Throws UserError [dtype_code].
DType dtype_of(std::int32_t code);
std::int32_t code_of(DType dtype);

/// Arguments that describe an array in the caller's memory.
struct CallerArray {
  std::int32_t dtype, rank;
  const std::int64_t* shape;
  const std::int64_t* strides;  ///< NULL: row-major
};

/// Returns a view of the caller's memory. `name` is that of the tensor. Throws UserError [dtype_code], [tensor_rank],
/// [null_argument], [host_tensor_shape].
ConstTensorRef view_of(std::string_view name, const CallerArray& array, const void* data);
TensorRef writable_view_of(std::string_view name, const CallerArray& array, void* data);

/// Returns an array of strings. Throws UserError [null_argument].
std::vector<std::string> texts_of(const char* const* texts, std::size_t count, std::string_view name);

/// Returns the sizes of dims of a graph. Throws UserError [null_argument], [dim_unknown], [dim_negative].
DimBindings dims_of(const ir::Graph& graph, const char* const* names, const std::int64_t* sizes, std::size_t count);
/// Checks one size; `unknowns` are the dims that may be given.
void check_dim(const std::vector<std::string>& unknowns, std::string_view name, std::int64_t size);

/// Throws UserError [list_index].
[[noreturn]] void throw_list_index(std::size_t index, std::size_t count, std::string_view what);

/// Returns an item of a list. Throws UserError [list_index].
template <class T>
const T& item(const std::vector<T>& items, std::size_t index, std::string_view what) {
  if (index >= items.size()) throw_list_index(index, items.size(), what);
  return items[index];
}

/// Throws UserError [struct_size].
void check_struct_size(std::size_t given, std::size_t least, std::string_view name);

/// Copies the fields of a struct that the caller's struct has, by its size. `first` is the size of the first version.
template <class S>
void fill(S* caller, S value, std::size_t first, std::string_view name) {
  const std::size_t size = needed(caller, name).struct_size;
  check_struct_size(size, first, name);
  value.struct_size = size;
  std::memcpy(caller, &value, size < sizeof(S) ? size : sizeof(S));
  if (size > sizeof(S)) std::memset(reinterpret_cast<char*>(caller) + sizeof(S), 0, size - sizeof(S));
}

/// Describes a tensor for the caller.
void fill(lathe_array* caller, const HostTensor& tensor);

}  // namespace lathe::c_api
