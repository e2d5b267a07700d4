# The oldest supported compilers: C++20 as supported by libstdc++ 12.
set(LATHE_OLDEST_GNU 12)
set(LATHE_OLDEST_Clang 16)
set(lathe_oldest "${LATHE_OLDEST_${CMAKE_CXX_COMPILER_ID}}")
# A program that finds the package may only use its C targets, for which any compiler suffices.
set(lathe_too_old FATAL_ERROR)
if(DEFINED CMAKE_FIND_PACKAGE_NAME)
  set(lathe_too_old WARNING)
endif()
if(lathe_oldest AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS lathe_oldest)
  message(${lathe_too_old}
    "Lathe needs g++ ${LATHE_OLDEST_GNU} or clang++ ${LATHE_OLDEST_Clang} and newer; ${CMAKE_CXX_COMPILER} is "
    "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}. Choose another one by -DCMAKE_CXX_COMPILER=g++ "
    "in a new build folder.")
endif()
if(NOT lathe_oldest)
  message(WARNING "Lathe is tested with g++ and clang++ alone, not with ${CMAKE_CXX_COMPILER_ID}.")
endif()
