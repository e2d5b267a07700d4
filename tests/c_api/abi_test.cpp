#include <lathe/lathe_c.h>

#include <catch2/catch.hpp>
#include <cstddef>

/// The values and layouts of version 1 of the ABI, which must not change.
TEST_CASE("c api: the codes of version 1") {
  CHECK(LATHE_C_ABI_VERSION == 1);
  const int statuses[] = {LATHE_OK, LATHE_USER_ERROR, LATHE_PARSE_ERROR, LATHE_OUT_OF_MEMORY, LATHE_INTERNAL_ERROR};
  const int dtypes[] = {LATHE_F64,  LATHE_F32, LATHE_BF16, LATHE_F16, LATHE_I64, LATHE_I32,
                        LATHE_BOOL, LATHE_C64, LATHE_C128, LATHE_I8,  LATHE_U8};
  const int roles[] = {LATHE_INPUT, LATHE_PARAMETER, LATHE_STATE, LATHE_OUTPUT};
  const int parts[] = {LATHE_ERROR_TEXT, LATHE_ERROR_MESSAGE, LATHE_ERROR_LABEL, LATHE_ERROR_HINT, LATHE_ERROR_FILE};
  const auto check = [](const auto& codes) {
    int expected = 0;
    for (const int code : codes) CHECK(code == expected++);
  };
  check(statuses), check(dtypes), check(roles), check(parts);
}

TEST_CASE("c api: the layouts of version 1") {
  static_assert(sizeof(lathe_status) == 4 && sizeof(void*) == 8);
  CHECK(offsetof(lathe_tensor_info, struct_size) == 0);
  CHECK(offsetof(lathe_tensor_info, name) == 8);
  CHECK(offsetof(lathe_tensor_info, role) == 16);
  CHECK(offsetof(lathe_tensor_info, dtype) == 20);
  CHECK(offsetof(lathe_tensor_info, rank) == 24);
  CHECK(offsetof(lathe_tensor_info, is_updated) == 28);
  CHECK(offsetof(lathe_tensor_info, sizes) == 32);
  CHECK(offsetof(lathe_tensor_info, dims) == 40);
  CHECK(offsetof(lathe_tensor_info, type) == 48);
  CHECK(offsetof(lathe_array, struct_size) == 0);
  CHECK(offsetof(lathe_array, dtype) == 8);
  CHECK(offsetof(lathe_array, rank) == 12);
  CHECK(offsetof(lathe_array, shape) == 16);
  CHECK(offsetof(lathe_array, data) == 24);
  CHECK(offsetof(lathe_array, bytes) == 32);
}
