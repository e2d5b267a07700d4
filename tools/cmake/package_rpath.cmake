# Run by CPack before it packs. Binaries in a package for Debian find all libraries in the system's folders. Without
# other folders in them, dpkg-shlibdeps finds the packages of the libraries.
cmake_policy(VERSION 3.25)
if(CPACK_GENERATOR STREQUAL DEB)
  file(GLOB_RECURSE binaries LIST_DIRECTORIES false ${CPACK_TEMPORARY_DIRECTORY}/*)
  list(FILTER binaries INCLUDE REGEX "/bin/lathe$|[.]so[.0-9]*$")
  foreach(binary ${binaries})
    file(RPATH_REMOVE FILE ${binary})
  endforeach()
endif()
