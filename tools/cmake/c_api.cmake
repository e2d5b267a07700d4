# liblathe_c.so, the C API: all of Lathe that it needs, with only the functions of <lathe/lathe_c.h> exported. Its name
# has the version of its ABI, and not that of Lathe.
lathe_library(lathe_c_calls runtime/c_api NEEDS lathe_runtime lathe_frontend)
target_include_directories(lathe_c_calls PUBLIC ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(lathe_c_calls PRIVATE LATHE_VERSION="${PROJECT_VERSION}")

set(c_header ${PROJECT_SOURCE_DIR}/include/lathe/lathe_c.h)
set(c_exports ${PROJECT_SOURCE_DIR}/runtime/c_api/exports.map)
file(STRINGS ${c_header} c_abi REGEX "^#define LATHE_C_ABI_VERSION [0-9]+$")
string(REGEX MATCH "[0-9]+$" c_abi "${c_abi}")
add_library(lathe_c_shared SHARED ${c_header})
set_target_properties(lathe_c_shared PROPERTIES OUTPUT_NAME lathe_c EXPORT_NAME c LINKER_LANGUAGE CXX
                                                LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,lathe_c_calls"
                                                LINK_DEPENDS ${c_exports}
                                                VERSION ${c_abi}.${PROJECT_VERSION} SOVERSION ${c_abi})
target_link_options(lathe_c_shared PRIVATE LINKER:--version-script=${c_exports})
target_link_libraries(lathe_c_shared PRIVATE lathe_c_calls)
target_include_directories(lathe_c_shared INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
add_library(Lathe::c ALIAS lathe_c_shared)  # same name as in an installed Lathe
