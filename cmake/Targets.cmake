# SPDX-License-Identifier: Apache-2.0
# How each kind of target is built.
#
# A library `name` is in the folder `name/`. Its headers are included as "name/x.h", and only by targets that link it: the
# include directory is a private folder of the build tree that holds only a link to the library's source folder, so an
# include that the architecture forbids does not compile.

set(CLAIMD_WARNINGS
    -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wstrict-prototypes
    -Wmissing-prototypes -Wold-style-definition -Wundef -Wvla -Wcast-qual -Wcast-align
    -Wpointer-arith -Wwrite-strings -Wformat=2 -Wswitch-enum
    -Wnull-dereference -Wdouble-promotion -Wredundant-decls -Wdate-time)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    # clang doesn't know uthash's fall-through comments.
    list(APPEND CLAIMD_WARNINGS -Wduplicated-cond -Wlogical-op -Wimplicit-fallthrough)
    if(CMAKE_C_FLAGS MATCHES "-fsanitize") # hides lengths from the compiler that it would need
        list(APPEND CLAIMD_WARNINGS -Wno-format-truncation)
    else()
        list(APPEND CLAIMD_WARNINGS -Wformat-truncation=1)
    endif()
endif()

add_library(claimd_flags INTERFACE)
target_compile_options(claimd_flags INTERFACE ${CLAIMD_WARNINGS} -fstack-protector-strong)
target_compile_definitions(claimd_flags INTERFACE _GNU_SOURCE CLAIMD_RELEASE="${CLAIMD_RELEASE}")
target_compile_features(claimd_flags INTERFACE c_std_11)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# All programs of the build are in one folder, as after installation.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CLAIMD_PLUGIN_DIR ${PROJECT_BINARY_DIR}/plugins)

function(claimd_include_root target scope name folder)
    set(root ${PROJECT_BINARY_DIR}/include/${name})
    file(MAKE_DIRECTORY ${root})
    file(CREATE_LINK ${folder} ${root}/${name} SYMBOLIC)
    target_include_directories(${target} ${scope} ${root})
endfunction()

# claimd_library(name SOURCES … LINKS …)
function(claimd_library name)
    cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
    add_library(${name} STATIC ${ARG_SOURCES})
    target_link_libraries(${name} PUBLIC ${ARG_LINKS} PRIVATE claimd_flags)
    claimd_include_root(${name} PUBLIC ${name} ${CMAKE_CURRENT_SOURCE_DIR})
endfunction()

# claimd_program(name COMPONENT c SOURCES … LINKS …): installed to bin; the component is the package (deploy/packages)
function(claimd_program name)
    cmake_parse_arguments(ARG "" "COMPONENT" "SOURCES;LINKS" ${ARGN})
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE ${ARG_LINKS} claimd_flags)
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${ARG_COMPONENT})
endfunction()

# claimd_plugin(name DIRECTORY dir SOURCES … LINKS …): a handler, name.so, which includes no headers of claimd except the SDK's
function(claimd_plugin name)
    cmake_parse_arguments(ARG "" "DIRECTORY" "SOURCES;LINKS" ${ARGN})
    add_library(plugin_${name} MODULE ${ARG_SOURCES})
    set_target_properties(plugin_${name} PROPERTIES PREFIX "" OUTPUT_NAME ${name}
        LIBRARY_OUTPUT_DIRECTORY ${ARG_DIRECTORY} C_VISIBILITY_PRESET hidden)
    target_link_libraries(plugin_${name} PRIVATE sdk ${ARG_LINKS} claimd_flags)
endfunction()

# claimd_add_test(NAME name COMMAND program … [CONFIGURATIONS c]): add_test() under tests/support/guard.c, so that a killed
# test leaves nothing behind
function(claimd_add_test)
    cmake_parse_arguments(ARG "" "NAME" "COMMAND;CONFIGURATIONS" ${ARGN})
    list(POP_FRONT ARG_COMMAND program)
    if(TARGET ${program})
        set(program $<TARGET_FILE:${program}>)
    endif()
    add_test(NAME ${ARG_NAME} CONFIGURATIONS ${ARG_CONFIGURATIONS}
        COMMAND test_guard ${PROJECT_BINARY_DIR}/kept ${program} ${ARG_COMMAND})
endfunction()

# claimd_test(name LABEL unit|integration|e2e SOURCES … LINKS … [TIMEOUT s]): one libcheck program, one ctest entry
function(claimd_test name)
    cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;LINKS" ${ARGN})
    if(NOT ARG_TIMEOUT)
        set(ARG_TIMEOUT 60)
    endif()
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE ${ARG_LINKS} support claimd_flags PkgConfig::CHECK)
    add_dependencies(${name} test_guard)
    claimd_add_test(NAME ${name} COMMAND ${name})
    if(name MATCHES "redlock") # any test of the lock library: ./dev test -L redlock
        list(APPEND ARG_LABEL redlock)
    endif()
    if(name MATCHES "metrics")
        list(APPEND ARG_LABEL metrics)
    endif()
    math(EXPR limit "${ARG_TIMEOUT} * 5") # so that no limit, this or a test's own, is reached on a busy machine
    set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT ${limit} COST ${ARG_TIMEOUT} # the longest tests start first
        ENVIRONMENT "CK_DEFAULT_TIMEOUT=30;CK_TIMEOUT_MULTIPLIER=5;CLAIMD_BIN_DIR=${CMAKE_RUNTIME_OUTPUT_DIRECTORY};CLAIMD_PLUGIN_DIR=${CLAIMD_PLUGIN_DIR};CLAIMD_TEST_PLUGIN_DIR=${PROJECT_BINARY_DIR}/test_plugins;CLAIMD_SOURCE_DIR=${PROJECT_SOURCE_DIR};CLAIMD_TEST_PG_TEMPLATE=${PROJECT_BINARY_DIR}/pg-template")
endfunction()
