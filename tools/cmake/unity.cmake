# LATHE_UNITY is for clean builds, which spend most of their time on parsing headers. Incremental builds are faster
# without it.

# Precompiles headers that most programs include. Libraries do not benefit from that.
function(lathe_precompiled kind)
  set(target lathe_precompiled_${kind})
  file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${target}.cpp CONTENT "" @ONLY)
  add_library(${target} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${target}.cpp)
  target_link_libraries(${target} PRIVATE fmt::fmt lathe_warnings)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  target_precompile_headers(${target} PRIVATE ${ARGN})
  # Options of the targets that reuse the precompiled headers.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIE -O0 -g0)
endfunction()
if(LATHE_UNITY)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Saves a tenth of the time: no garbage collection below 1 GB (in KB).
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:--param ggc-min-heapsize=1000000>")
  endif()
  set(read_first fmt/core.h fmt/ranges.h algorithm array chrono cmath cstdint filesystem fstream functional iostream limits
                 map memory numeric optional random set span sstream string string_view utility variant vector)
  list(TRANSFORM read_first REPLACE "(.+)" "<\\1>")
  # Programs precompile the public headers, unless there is only the command, whose few units read them about as
  # fast. Tests precompile no header of Lathe, because each must include what it uses.
  if(LATHE_TESTS OR LATHE_EXAMPLES OR LATHE_BENCH)
    lathe_precompiled(program ${read_first} ${PROJECT_SOURCE_DIR}/include/lathe/lathe.h)
  endif()
  if(LATHE_TESTS)
    lathe_precompiled(test ${read_first} <catch2/catch.hpp>)
  endif()
  # Templates and inline functions in programs also exist in libraries. The linker uses the first definition, so link
  # libraries first: the program's own code is not optimized.
  string(REPLACE "<OBJECTS>" "<LINK_LIBRARIES> <OBJECTS>" CMAKE_CXX_LINK_EXECUTABLE "${CMAKE_CXX_LINK_EXECUTABLE}")
endif()

# Sets options of a program, or of a test for kind `test`. They are not optimized: compiling takes longer than that
# would save, because their time is spent in the libraries.
function(lathe_program target)
  set(kind program ${ARGN})
  list(GET kind -1 kind)
  if(LATHE_UNITY)
    target_compile_options(${target} PRIVATE -O0 -g0)
    if(NOT TARGET lathe_precompiled_${kind})
      return()
    endif()
    target_precompile_headers(${target} REUSE_FROM lathe_precompiled_${kind})
    target_link_libraries(${target} PRIVATE fmt::fmt)  # its options were used for the precompiled headers
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      target_compile_options(${target} PRIVATE -fpch-preprocess)  # for ccache
    endif()
  endif()
endfunction()

# Optimizes the files of a target whose own speed is a result, such as a measured peak, in every kind of build.
function(lathe_measured_sources)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "-O2;-DLATHE_MEASURED" SKIP_UNITY_BUILD_INCLUSION ON
                              SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# Compiles the files of a target as a few units of adjacent files, so that headers are parsed and templates
# instantiated a few times instead of hundreds. Names in a file's unnamed namespace must therefore be unique in the
# enclosing namespace. Units have equal size, so that all cores finish together. A build ends with the units of
# programs, so they are smaller.
function(lathe_unity target)
  if(NOT LATHE_UNITY)
    return()
  endif()
  get_target_property(type ${target} TYPE)
  get_target_property(precompiled ${target} PRECOMPILE_HEADERS_REUSE_FROM)
  if(type STREQUAL EXECUTABLE AND NOT precompiled)
    lathe_program(${target})
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  list(SORT sources)
  list(LENGTH sources count)
  set(files 80)
  if(type STREQUAL EXECUTABLE)
    set(files 40)
  endif()
  math(EXPR units "(${count} + ${files} - 1) / ${files}")
  set(index 0)
  foreach(source ${sources})
    math(EXPR unit "${index} * ${units} / ${count}")
    math(EXPR index "${index} + 1")
    set_property(SOURCE ${source} PROPERTY UNITY_GROUP part${unit})
  endforeach()
endfunction()

# Compiles sources of tests in units of 32, each source in its own namespace after all included headers. Sources
# that add to Lathe's namespaces are compiled like those of a library. Builds without LATHE_UNITY optimize tests and
# show the warnings that need optimization.
function(lathe_unity_tests target)
  if(NOT LATHE_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  set(wrapped)
  foreach(source ${sources})
    file(STRINGS ${source} opened REGEX "^namespace lathe|__has_include")
    if(NOT opened)
      list(APPEND wrapped ${source})
    endif()
  endforeach()
  lathe_program(${target} test)
  lathe_unity(${target})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${wrapped})
  set_source_files_properties(${wrapped} PROPERTIES HEADER_FILE_ONLY ON)
  set(unit 0)
  while(wrapped)
    list(SUBLIST wrapped 0 32 files)
    list(REMOVE_ITEM wrapped ${files})
    set(includes)
    set(bodies)
    foreach(file ${files})
      file(STRINGS ${file} lines REGEX "^#include")
      list(APPEND includes ${lines})
      get_filename_component(name ${file} NAME_WE)
      string(APPEND bodies "namespace of_${name} {\n#include \"${file}\"\n}\n")
    endforeach()
    list(REMOVE_DUPLICATES includes)
    list(JOIN includes "\n" includes)
    set(path ${CMAKE_CURRENT_BINARY_DIR}/${target}_unit${unit}.cpp)
    file(CONFIGURE OUTPUT ${path} CONTENT "${includes}\n${bodies}" @ONLY)
    target_sources(${target} PRIVATE ${path})
    math(EXPR unit "${unit} + 1")
  endwhile()
endfunction()
