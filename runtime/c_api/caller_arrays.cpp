#include "runtime/c_api/caller_arrays.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "ir/support/error.h"
#include "ir/support/nearest.h"
#include "ir/tensor/binding.h"

namespace lathe::c_api {

namespace {

/// Element types by their codes.
constexpr DType dtypes_by_code[] = {f64, f32, bf16, f16, i64, i32, boolean, c64, c128, i8, u8};
static_assert(std::size(dtypes_by_code) == std::size(all_dtypes));
static_assert(dtypes_by_code[LATHE_F64] == f64 && dtypes_by_code[LATHE_F32] == f32);
static_assert(dtypes_by_code[LATHE_BF16] == bf16 && dtypes_by_code[LATHE_F16] == f16);
static_assert(dtypes_by_code[LATHE_I64] == i64 && dtypes_by_code[LATHE_I32] == i32);
static_assert(dtypes_by_code[LATHE_BOOL] == boolean && dtypes_by_code[LATHE_C64] == c64);
static_assert(dtypes_by_code[LATHE_C128] == c128 && dtypes_by_code[LATHE_I8] == i8 && dtypes_by_code[LATHE_U8] == u8);

constexpr std::int32_t most_dims = 32;  // as in IR text

}  // namespace

DType dtype_of(std::int32_t code) {
  if (code < 0 || std::cmp_greater_equal(code, std::size(dtypes_by_code)))
    throw UserError(fmt::format("there is no dtype {}", code), "dtype_code", "give one of LATHE_F64 to LATHE_U8");
  return dtypes_by_code[code];
}

std::int32_t code_of(DType dtype) {
  return static_cast<std::int32_t>(std::ranges::find(dtypes_by_code, dtype) - std::begin(dtypes_by_code));
}

TensorRef writable_view_of(std::string_view name, const CallerArray& array, void* data) {
  TensorRef view;
  view.dtype = dtype_of(array.dtype);
  if (array.rank < 0 || array.rank > most_dims)
    throw UserError(fmt::format("{} has {} dims", name, array.rank), "tensor_rank",
                    fmt::format("give 0 to {}", most_dims));
  if (array.rank > 0) {
    const std::int64_t* shape = &needed(array.shape, fmt::format("the shape of {}", name));
    view.shape.assign(shape, shape + array.rank);
  }
  if (array.rank > 0 && array.strides) view.strides.assign(array.strides, array.strides + array.rank);
  if (count_elements(view.shape) > 0)
    view.data = &needed(static_cast<std::byte*>(data), fmt::format("the memory of {}", name));
  return view;
}

ConstTensorRef view_of(std::string_view name, const CallerArray& array, const void* data) {
  TensorRef view = writable_view_of(name, array, const_cast<void*>(data));
  return {view.dtype, std::move(view.shape), view.data, std::move(view.strides)};
}

std::vector<std::string> texts_of(const char* const* texts, std::size_t count, std::string_view name) {
  std::vector<std::string> found;
  for (std::size_t i = 0; i < count; ++i)
    found.emplace_back(text_of((&needed(texts, name))[i], fmt::format("{}[{}]", name, i)));
  return found;
}

void check_dim(const std::vector<std::string>& unknowns, std::string_view name, std::int64_t size) {
  const std::vector<std::string_view> known(unknowns.begin(), unknowns.end());
  if (std::ranges::find(known, name) == known.end())
    throw UserError(fmt::format("the graph has no unknown dim {}", name), "dim_unknown",
                    known.empty() ? std::string("all its sizes are known")
                                  : did_you_mean_or_list(name, known, "its unknown dims are"));
  if (size < 0) throw UserError(fmt::format("the size {} is {}", name, size), "dim_negative", "give 0 or more");
}

DimBindings dims_of(const ir::Graph& graph, const char* const* names, const std::int64_t* sizes, std::size_t count) {
  DimBindings dims;
  if (count == 0) return dims;
  const std::vector<std::string> unknowns = ir::unbound_dims(graph, {});
  const std::int64_t* size = &needed(sizes, "dim_sizes");
  for (std::string& name : texts_of(names, count, "dim_names")) {
    check_dim(unknowns, name, *size);
    dims.insert_or_assign(std::move(name), *size++);
  }
  return dims;
}

void throw_list_index(std::size_t index, std::size_t count, std::string_view what) {
  throw UserError(fmt::format("index {} of {} {}", index, count, what), "list_index",
                  "give an index from 0 to the count less 1");
}

void check_struct_size(std::size_t given, std::size_t least, std::string_view name) {
  constexpr std::size_t most = 4096;  // more is an uninitialized field
  if (given < least || given > most)
    throw UserError(fmt::format("struct_size of a {} is {}", name, given), "struct_size",
                    fmt::format("set it to sizeof({}) before the call", name));
}

void fill(lathe_array* caller, const HostTensor& tensor) {
  fill(caller,
       lathe_array{.struct_size = 0,
                   .dtype = code_of(tensor.dtype()),
                   .rank = static_cast<std::int32_t>(tensor.rank()),
                   .shape = tensor.shape().data(),
                   .data = tensor.data(),
                   .bytes = tensor.bytes()},
       offsetof(lathe_array, bytes) + sizeof(lathe_array::bytes), "lathe_array");
}

}  // namespace lathe::c_api
