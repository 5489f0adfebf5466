# SPDX-License-Identifier: Apache-2.0
# The version of everything in this repository.
set(CLAIMD_RELEASE 0.2.0)

# Returns the version that this build reports: -DCLAIMD_BUILD=… if there is no git, as in a Docker build; otherwise the output of
# cmake/build-version, which runs again when another commit is checked out.
function(claimd_build ret)
    set(CLAIMD_BUILD "" CACHE STRING "What --version prints; empty: from git")
    set(source ${CMAKE_CURRENT_FUNCTION_LIST_DIR})
    set(build "${CLAIMD_BUILD}")
    if(build STREQUAL "")
        execute_process(COMMAND ${source}/build-version OUTPUT_VARIABLE build OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
        execute_process(COMMAND git -C ${source} rev-parse --path-format=absolute --git-path logs/HEAD
            OUTPUT_VARIABLE log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
        if(failed STREQUAL "0" AND EXISTS "${log}")
            set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${log})
        endif()
    endif()
    if(NOT build MATCHES "^${CLAIMD_RELEASE}([~+-][A-Za-z0-9.~+-]+)?$")
        message(FATAL_ERROR "CLAIMD_BUILD is '${build}'; allowed: ${CLAIMD_RELEASE}, or this and ~, + or - with letters, digits and .~+- behind it")
    endif()
    set(${ret} ${build} PARENT_SCOPE)
endfunction()
