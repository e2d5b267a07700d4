# `cmake --install build --prefix P` installs P/lib/liblathe.so, P/lib/liblathe_c.so, the public headers in
# P/include/lathe, the pages that they refer to, the command, and the files for find_package(Lathe), with
# lathe_add_graph().
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(parts lathe_support lathe_kernel lathe_ir lathe_options lathe_passes lathe_frontend lathe_codegen_llvm lathe_codegen_cuda
          lathe_files lathe_text lathe_runtime lathe_import lathe_export lathe_pretrained lathe_generation lathe_finetune)
# One shared library, so that programs do not depend on the libraries with which Lathe is built.
string(REPLACE ";" "," whole "${parts}")
add_library(lathe_shared SHARED ${PROJECT_SOURCE_DIR}/include/lathe/lathe.h)
set_target_properties(lathe_shared PROPERTIES OUTPUT_NAME lathe EXPORT_NAME lathe LINKER_LANGUAGE CXX
                                              LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,${whole}"
                                              VERSION ${PROJECT_VERSION}
                                              SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_link_libraries(lathe_shared PRIVATE ${parts})
target_compile_features(lathe_shared INTERFACE cxx_std_20)
target_include_directories(lathe_shared INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
add_library(Lathe::lathe ALIAS lathe_shared)  # same name as in an installed Lathe
include(tools/cmake/c_api.cmake)
# The headers for users of C libraries: lathe_pool.h and others.
add_library(lathe_aot INTERFACE)
set_target_properties(lathe_aot PROPERTIES EXPORT_NAME aot)
target_include_directories(lathe_aot INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include/lathe/aot>
                                               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/lathe/aot>)
target_link_libraries(lathe_aot INTERFACE -pthread)
add_library(Lathe::aot ALIAS lathe_aot)
include(${CMAKE_CURRENT_LIST_DIR}/LatheGraphs.cmake)
if(NOT LATHE_INSTALL)
  return()
endif()
add_dependencies(lathe_installed lathe_shared lathe_c_shared)
# Headers are included as <lathe/...> from the include folder, the only include path that is added.
install(TARGETS lathe_shared lathe_c_shared lathe_aot EXPORT LatheTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT LatheTargets NAMESPACE Lathe:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Lathe)

install(CODE "set(source \"${PROJECT_SOURCE_DIR}\")\nset(headers \"${CMAKE_INSTALL_INCLUDEDIR}/lathe\")")
install(SCRIPT ${PROJECT_SOURCE_DIR}/tools/cmake/install_headers.cmake)

install(DIRECTORY include/lathe/aot DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lathe)
install(FILES tools/cmake/LatheGraphs.cmake tools/cmake/compiler.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Lathe)

# The pages that headers refer to, such as docs/ops.md.
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")

configure_package_config_file(tools/cmake/LatheConfig.cmake.in ${PROJECT_BINARY_DIR}/cmake/LatheConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Lathe)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/LatheConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmake/LatheConfig.cmake ${PROJECT_BINARY_DIR}/cmake/LatheConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Lathe)
