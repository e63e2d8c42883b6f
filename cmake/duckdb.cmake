# Target `duckdb`: the prebuilt shared library and its C header, copied into <build>/lib.
# DUCKDB_ROOT holds {lib/libduckdb.so, include/duckdb.h}, or both files side by side; DUCKDB_VERSION
# names one of the pinned ones. docs/decisions/0011-engine-versions.md says which are tested.
set(DUCKDB_ROOT "" CACHE PATH "An installed DuckDB (default: what scripts/fetch_duckdb.sh fetched)")
set(DUCKDB_VERSION "" CACHE STRING "A pinned DuckDB of scripts/deps.env (default: the one named there)")
set(duckdb_root "${DUCKDB_ROOT}")
if(NOT duckdb_root)
  execute_process(
    COMMAND ${CMAKE_SOURCE_DIR}/scripts/fetch_duckdb.sh ${CMAKE_SYSTEM_PROCESSOR} ${DUCKDB_VERSION}
    OUTPUT_VARIABLE duckdb_root OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()

set(duckdb_library "")
set(duckdb_include "")
foreach(folder lib .)
  if(NOT duckdb_library AND EXISTS "${duckdb_root}/${folder}/libduckdb.so")
    set(duckdb_library "${duckdb_root}/${folder}/libduckdb.so")
  endif()
endforeach()
foreach(folder include .)
  if(NOT duckdb_include AND EXISTS "${duckdb_root}/${folder}/duckdb.h")
    set(duckdb_include "${duckdb_root}/${folder}")
  endif()
endforeach()
if(NOT duckdb_library OR NOT duckdb_include)
  message(FATAL_ERROR "no libduckdb.so and duckdb.h under DUCKDB_ROOT '${duckdb_root}'")
endif()

file(COPY "${duckdb_library}" DESTINATION ${CMAKE_BINARY_DIR}/lib FOLLOW_SYMLINK_CHAIN)
# One out of a Python wheel has a second library beside it (scripts/fetch_duckdb.sh).
get_filename_component(duckdb_folder "${duckdb_library}" DIRECTORY)
file(GLOB duckdb_others "${duckdb_folder}/libduckdb_*.so")
file(COPY ${duckdb_others} DESTINATION ${CMAKE_BINARY_DIR}/lib)
add_library(duckdb SHARED IMPORTED GLOBAL)
set_target_properties(duckdb PROPERTIES
  IMPORTED_LOCATION ${CMAKE_BINARY_DIR}/lib/libduckdb.so
  IMPORTED_NO_SONAME ON
  INTERFACE_INCLUDE_DIRECTORIES "${duckdb_include}")
