# SPDX-License-Identifier: Apache-2.0
# The lock library's packages, which need nothing of claimd's. One more is a component in the list below and a package();
# sbom(), if programs or libraries are in it.
#
#   libredlock0     libredlock.so.0
#   libredlock-dev  headers, libredlock.a, pkg-config and CMake packages, redlock(3)
#   redlock-tools   the command redlock, redlock(1); it has the library inside
#   python3-redlock the same for Python, by ctypes
list(APPEND CPACK_COMPONENTS_ALL redlock_library redlock_dev redlock_tools redlock_python)
get_target_property(soversion redlock_shared SOVERSION)
set(library libredlock${soversion})
sbom(redlock_library ${library} MODULES redlock_shared)
sbom(redlock_tools redlock-tools PROGRAMS redlock-cmd)

set(out ${CMAKE_CURRENT_BINARY_DIR}/${library})
file(STRINGS ${root}/redlock/${library}.symbols symbols)
list(TRANSFORM symbols REPLACE " ([0-9.]+)$" " \\1~") # builds before that release have it, too
list(JOIN symbols "\n" symbols)
file(WRITE ${out}/symbols "${symbols}\n")
file(WRITE ${out}/shlibs "libredlock ${soversion} ${library} (>= ${CLAIMD_BUILT_AS})\n")
file(WRITE ${out}/triggers "activate-noawait ldconfig\n")
set(about "A lock is kept on N independent Redis or Valkey masters and belongs to whom
a majority has given it. It is a lease, which is extended while its holder
lives.
")
# The trigger is enough. CPack would add scripts that call ldconfig; it does not if it is given some, and leaves out
# what is not there.
package(redlock_library ${library} SECTION libs
    DESCRIPTION "locks over independent Redis masters: library
${about}
This package has the shared library."
    CONTROL ${out}/symbols ${out}/shlibs ${out}/triggers ${out}/none/postinst ${out}/none/postrm)
package(redlock_dev libredlock-dev SECTION libdevel
    DEPENDS "${library} (= ${CLAIMD_BUILT_AS}), libhiredis-dev, libssl-dev, libuv1-dev" SUGGESTS "pkg-config"
    DESCRIPTION "locks over independent Redis masters: for C programs
${about}
This package has the headers, the static library and the manual.")
package(redlock_tools redlock-tools SECTION utils
    DESCRIPTION "locks over independent Redis masters: command line
${about}
redlock exec runs a command under a lock, like flock, but on one of many
hosts. redlock status and redlock nodes show who holds what, and which master
may vote.")
python_scripts(python3-redlock redlock/__pycache__ python)
package(redlock_python python3-redlock SECTION python
    DEPENDS "${library} (>= ${CLAIMD_BUILT_AS}), python3 (>= 3.9)"
    DESCRIPTION "locks over independent Redis masters: for Python programs
${about}
This package has a module for threads and one for asyncio."
    CONTROL ${python})
set(CPACK_DEBIAN_REDLOCK_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_REDLOCK_PYTHON_PACKAGE_SHLIBDEPS OFF)
