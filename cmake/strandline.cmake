# Helpers of this project's CMakeLists files.
#
#   strandline_library(delta DEPENDS storage base LIBS simdjson::simdjson roaring)
#     Library `strandline_delta` from the folder's *.cc, and one test program `delta_test` from its
#     *_test.cc. DEPENDS names folders of src/, LIBS third-party targets private to this folder.
#     A folder without *.cc is header-only.
#   strandline_test(property SOURCES a.cc b.cc DEPENDS engine [LIBS …] [TIMEOUT 600] [LABELS slow])
#     GoogleTest program `property_test`, registered with ctest, which sees src/ and include/.
#   strandline_program(strandline SOURCES main.cc LIBS CLI11::CLI11)
#     Program in <build>/bin on top of the engine, which sees include/ only.

add_library(strandline_warnings INTERFACE)
target_compile_options(strandline_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)

# The one object that knows the checkout's folder, so that checkouts share all others in ccache.
if(STRANDLINE_TESTS)
  add_library(strandline_test_paths STATIC ${PROJECT_SOURCE_DIR}/tests/support/paths.cc)
  target_include_directories(strandline_test_paths PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(strandline_test_paths PRIVATE
    STRANDLINE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(strandline_test_paths PRIVATE strandline_warnings)
endif()

function(strandline_library name)
  cmake_parse_arguments(arg "" "" "DEPENDS;LIBS" ${ARGN})
  set(target strandline_${name})
  list(TRANSFORM arg_DEPENDS PREPEND strandline_)

  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  if(sources)
    add_library(${target} ${sources})
    # As a shared library (preset mutants) it is compiled just as it is for the static one.
    set_target_properties(${target} PROPERTIES DEFINE_SYMBOL "")
    target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/include
                                         PRIVATE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(${target} PUBLIC ${arg_DEPENDS}
                                    PRIVATE ${arg_LIBS} strandline_warnings)
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(${target} INTERFACE ${arg_DEPENDS} ${arg_LIBS})
  endif()

  if(tests AND STRANDLINE_TESTS)
    strandline_test(${name} SOURCES ${tests} DEPENDS ${name} LIBS ${arg_LIBS})
  endif()
endfunction()

function(strandline_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;DEPENDS;LIBS;LABELS" ${ARGN})
  set(target ${name}_test)
  list(TRANSFORM arg_DEPENDS PREPEND strandline_)
  add_executable(${target} ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src
                                               ${PROJECT_SOURCE_DIR}/tests)
  # Tests are compiled more often than they run long.
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
  target_link_libraries(${target} PRIVATE ${arg_DEPENDS} ${arg_LIBS} GTest::gmock GTest::gtest_main
                                          strandline_test_paths strandline_warnings)
  add_test(NAME ${target} COMMAND ${target})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(CMAKE_CXX_FLAGS_DEBUG MATCHES "-fsanitize")
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 4")
  endif()
  set_tests_properties(${target} PROPERTIES
    TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}"
    ENVIRONMENT "GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/test-results/${target}.xml")
endfunction()

function(strandline_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${name} PRIVATE strandline_engine ${arg_LIBS} strandline_warnings)
  target_compile_definitions(${name} PRIVATE STRANDLINE_VERSION="${PROJECT_VERSION}")
endfunction()

# Every subfolder that has a CMakeLists.txt.
function(strandline_add_subfolders)
  file(GLOB lists CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*/CMakeLists.txt)
  foreach(list ${lists})
    get_filename_component(folder ${list} DIRECTORY)
    add_subdirectory(${folder})
  endforeach()
endfunction()
