# `cmake --install build --prefix P`: the libraries, their headers under P/include/lathe, the pages that these name,
# the command, and the files that find_package(Lathe) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(lathe_all INTERFACE)
add_library(Lathe::lathe ALIAS lathe_all)
set_target_properties(lathe_all PROPERTIES EXPORT_NAME lathe)
target_link_libraries(lathe_all INTERFACE lathe_frontend lathe_runtime)
target_compile_features(lathe_all INTERFACE cxx_std_20)
target_include_directories(lathe_all INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/tools/include>)

set(parts lathe_support lathe_kernel lathe_ir lathe_passes lathe_frontend lathe_codegen_llvm lathe_codegen_cuda
          lathe_files lathe_runtime)
foreach(part ${parts})
  string(REPLACE "lathe_" "" short ${part})
  set_target_properties(${part} PROPERTIES EXPORT_NAME ${short})
endforeach()
# <lathe/lathe.h> is found under include; what it includes, as "frontend/graph.h", under include/lathe.
install(TARGETS lathe_all ${parts} EXPORT LatheTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/lathe
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${CMAKE_INSTALL_INCLUDEDIR}/lathe)
install(EXPORT LatheTargets NAMESPACE Lathe:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Lathe)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/tools/include/lathe DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ir frontend passes runtime DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lathe
        FILES_MATCHING PATTERN "*.h")
# Of code generation those that stand without LLVM's headers.
install(FILES codegen/llvm/compile.h codegen/llvm/jit.h codegen/llvm/target_cpu.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lathe/codegen/llvm)
install(DIRECTORY codegen/cuda DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lathe/codegen FILES_MATCHING PATTERN "*.h")

# The pages that headers name: docs/ops.md and the like.
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")

get_target_property(LATHE_LLVM_FILE LLVM IMPORTED_LOCATION_RELWITHDEBINFO)
get_filename_component(LATHE_LLVM_FOLDER ${LATHE_LLVM_FILE} DIRECTORY)
get_filename_component(LATHE_LLVM_FILE ${LATHE_LLVM_FILE} NAME)
configure_package_config_file(tools/cmake/LatheConfig.cmake.in ${PROJECT_BINARY_DIR}/cmake/LatheConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Lathe)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/LatheConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmake/LatheConfig.cmake ${PROJECT_BINARY_DIR}/cmake/LatheConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Lathe)
