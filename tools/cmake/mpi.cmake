# liblathe_mpi.so, the MPI plugin. It is built if an MPI is found. Only the plugin links to MPI, and nothing links to
# the plugin: it is loaded at run time (runtime/ranks/mpi).
set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI QUIET COMPONENTS CXX)
if(NOT MPI_CXX_FOUND)
  message(STATUS "No MPI: liblathe_mpi.so is not built, and training runs on one process")
  return()
endif()
add_library(lathe_mpi MODULE ${PROJECT_SOURCE_DIR}/runtime/mpi_plugin/plugin.cpp)
target_include_directories(lathe_mpi PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_definitions(lathe_mpi PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
target_link_libraries(lathe_mpi PRIVATE MPI::MPI_CXX lathe_warnings)
# In the folder of the command, which is searched first.
set_target_properties(lathe_mpi PROPERTIES CXX_VISIBILITY_PRESET default
                                           LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tools)
if(LATHE_INSTALL)
  add_dependencies(lathe_installed lathe_mpi)
  install(TARGETS lathe_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT mpi)
endif()
