# Libraries of compiled graphs as targets of CMake. docs/c-library.md has examples.
#
#   lathe_add_graph(TARGET FILE step.lathe... [PREFIX NAME] [MAX B=8 T=1024...] [DIM B=8...] [TARGETS x86-64-v3...]
#                   [PART prompt step...] [DTYPE bf16] [EVALUATION] [EMBED_WEIGHTS [WEIGHTS a.safetensors...]]
#                   [OPS libops.so...] [OPTIONS --no-fused-attention...])
#     Compiles files of IR text, or a model directory, when they change. The arguments are those of `lathe compile`;
#     OPTIONS are passed as they are. The prefix of the functions is TARGET by default.
#
#   lathe_add_generated_graph(TARGET GENERATOR PROGRAM [PREFIX NAME] [ARGUMENTS ...] [DEPENDS FILES...])
#     Runs a program at build time, when it changes: PROGRAM FOLDER ARGUMENTS. It writes NAME.h and libNAME.a to the
#     folder, with write_library() of <lathe/library.h>. PROGRAM is a target or a path.
#
# TARGET is a static library with the folder of its header and of lathe_pool.h, and needs nothing else of Lathe.

function(_lathe_graph_library target prefix)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "" "" "COMMAND;DEPENDS")
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}.graph)
  set(archive ${folder}/lib${prefix}.a)
  file(MAKE_DIRECTORY ${folder})
  list(TRANSFORM ARG_COMMAND REPLACE "^<folder>$" "${folder}")
  add_custom_command(OUTPUT ${archive} ${folder}/${prefix}.h
                     COMMAND ${ARG_COMMAND}
                     DEPENDS ${ARG_DEPENDS}
                     WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
                     COMMENT "Compiling the graphs of ${target}"
                     VERBATIM)
  add_custom_target(${target}_graph DEPENDS ${archive} ${folder}/${prefix}.h)
  add_library(${target} STATIC IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${archive} INTERFACE_INCLUDE_DIRECTORIES ${folder})
  target_link_libraries(${target} INTERFACE Lathe::aot m)
  add_dependencies(${target} ${target}_graph)
endfunction()

function(lathe_add_graph target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "EVALUATION;EMBED_WEIGHTS" "PREFIX;DTYPE"
                        "FILE;MAX;DIM;TARGETS;PART;WEIGHTS;OPS;OPTIONS")
  if(ARG_UNPARSED_ARGUMENTS OR NOT ARG_FILE)
    message(FATAL_ERROR "lathe_add_graph(${target}): give FILE, and only the arguments that LatheGraphs.cmake lists, "
                        "not '${ARG_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT TARGET Lathe::command)
    message(FATAL_ERROR "lathe_add_graph(${target}) needs the lathe command: build Lathe with -DLATHE_TOOLS=ON")
  endif()
  if(NOT ARG_PREFIX)
    set(ARG_PREFIX ${target})
  endif()
  set(inputs)
  foreach(list FILE WEIGHTS OPS)
    foreach(path ${ARG_${list}})
      get_filename_component(path ${path} ABSOLUTE)
      if(IS_DIRECTORY ${path})  # a model: its files
        file(GLOB files CONFIGURE_DEPENDS ${path}/*.json ${path}/*.safetensors)
        list(APPEND inputs ${files})
      else()
        list(APPEND inputs ${path})
      endif()
      list(APPEND absolute_${list} ${path})
    endforeach()
  endforeach()
  set(options)
  foreach(name MAX DIM PART)
    if(ARG_${name})
      string(TOLOWER ${name} option)
      list(JOIN ARG_${name} "," values)
      list(APPEND options --${option} ${values})
    endif()
  endforeach()
  if(ARG_TARGETS)
    list(JOIN ARG_TARGETS "," targets)
    list(APPEND options --target ${targets})
  endif()
  if(ARG_DTYPE)
    list(APPEND options --dtype ${ARG_DTYPE})
  endif()
  foreach(list WEIGHTS OPS)
    string(TOLOWER ${list} option)
    foreach(path ${absolute_${list}})
      list(APPEND options --${option} ${path})
    endforeach()
  endforeach()
  if(ARG_EVALUATION)
    list(APPEND options --evaluation)
  endif()
  if(ARG_EMBED_WEIGHTS)
    list(APPEND options --embed-weights)
  endif()
  _lathe_graph_library(${target} ${ARG_PREFIX}
                       COMMAND Lathe::command compile ${absolute_FILE} --prefix ${ARG_PREFIX} ${options} ${ARG_OPTIONS}
                               --emit=archive,header -o <folder>
                       DEPENDS ${inputs} Lathe::command)
endfunction()

function(lathe_add_generated_graph target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "GENERATOR;PREFIX" "ARGUMENTS;DEPENDS")
  if(ARG_UNPARSED_ARGUMENTS OR NOT ARG_GENERATOR)
    message(FATAL_ERROR "lathe_add_generated_graph(${target}): give GENERATOR, and only the arguments that "
                        "LatheGraphs.cmake lists, not '${ARG_UNPARSED_ARGUMENTS}'")
  endif()
  if(NOT ARG_PREFIX)
    set(ARG_PREFIX ${target})
  endif()
  _lathe_graph_library(${target} ${ARG_PREFIX} COMMAND ${ARG_GENERATOR} <folder> ${ARG_ARGUMENTS}
                       DEPENDS ${ARG_GENERATOR} ${ARG_DEPENDS})
endfunction()
