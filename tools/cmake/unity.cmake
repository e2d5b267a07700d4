# LATHE_UNITY is for clean builds: reading headers is most of their work. Builds after an edit are faster without.

# The files of a target are compiled as a few units, neighbours together, so that headers are read and the same
# templates compiled a few times instead of hundreds. What a file keeps in its unnamed namespace then needs a name of its
# own among all that its namespace sees. Units are of one size, so that cores are done together.
function(lathe_unity target)
  if(NOT LATHE_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  list(SORT sources)
  list(LENGTH sources count)
  math(EXPR units "(${count} + 39) / 40")
  set(index 0)
  foreach(source ${sources})
    math(EXPR unit "${index} * ${units} / ${count}")
    math(EXPR index "${index} + 1")
    set_property(SOURCE ${source} PROPERTY UNITY_GROUP part${unit})
  endforeach()
endfunction()

# The headers are read once for all files of a program. GCC 12 no longer knows then that they are the system's, and
# warns of bounds in what it inlines from them; builds without LATHE_UNITY keep these warnings.
function(lathe_precompile target)
  if(LATHE_UNITY)
    target_precompile_headers(${target} PRIVATE ${ARGN})
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow
                                              -Wno-stringop-overread)
  endif()
endfunction()

# Tests wait for what they call, not for themselves: compiling them takes longer than optimizing them saves. Builds
# without LATHE_UNITY optimize them, and have the warnings that only this gives.
function(lathe_unoptimized target)
  if(LATHE_UNITY)
    target_compile_options(${target} PRIVATE -O0 -g0)
  endif()
endfunction()
