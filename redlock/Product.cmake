# SPDX-License-Identifier: Apache-2.0
# Installs the lock library: libredlock.so.0, libredlock.a, headers, pkg-config and CMake packages, man pages, the
# Python package. The components redlock_library, redlock_dev, redlock_tools and redlock_python are Debian packages
# (deploy/packages/redlock.cmake). Both libraries are made of one object file that holds redlock/ and the parts of
# base/ and redis/ that it needs. Only redlock_* is visible in it, so that none of our names can collide with a name
# of the program that uses it.

set(REDLOCK_SOVERSION 0)
set(whole ${CMAKE_CURRENT_BINARY_DIR}/whole.o)
add_custom_command(OUTPUT ${whole}
    COMMAND ${CMAKE_LINKER} -r -o ${whole} --whole-archive $<TARGET_FILE:redlock> $<TARGET_FILE:redlock_core>
            $<TARGET_FILE:redlock_rules> --no-whole-archive $<TARGET_FILE:redis> $<TARGET_FILE:base>
    COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=redlock_* ${whole}
    DEPENDS redlock redlock_core redlock_rules redis base
    COMMENT "Linking redlock into one object" VERBATIM)

add_library(redlock_shared SHARED ${whole} ${CMAKE_CURRENT_SOURCE_DIR}/redlock.map)
set_source_files_properties(${whole} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
set_target_properties(redlock_shared PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME redlock EXPORT_NAME redlock
    VERSION ${PROJECT_VERSION} SOVERSION ${REDLOCK_SOVERSION}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/redlock.map)
# nodelete: a thread that waits for a name server may outlive the client, so its code must stay loaded after
# dlclose().
target_link_options(redlock_shared PRIVATE -Wl,-z,nodelete
    -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/redlock.map)
target_link_libraries(redlock_shared PRIVATE ${REDLOCK_LINKS})
target_include_directories(redlock_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

set(archive ${PROJECT_BINARY_DIR}/lib/libredlock.a)
add_custom_command(OUTPUT ${archive}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND ${CMAKE_AR} rcs ${archive} ${whole}
    DEPENDS ${whole} COMMENT "Linking libredlock.a" VERBATIM)
add_custom_target(redlock_static ALL DEPENDS ${archive})
add_dependencies(redlock_static redlock_shared) # one of them at a time makes the object file

set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH REDLOCK_PC_TO_PREFIX /${pc_dir} /)
configure_file(redlock.pc.in redlock.pc @ONLY)
install(TARGETS redlock_shared EXPORT redlock LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT redlock_library NAMELINK_COMPONENT redlock_dev)
install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT redlock_dev)
install(CODE "if(CMAKE_INSTALL_DO_STRIP) # which is about targets only
    execute_process(COMMAND ${CMAKE_STRIP} --strip-debug
        \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/libredlock.a\" COMMAND_ERROR_IS_FATAL ANY)
endif()" COMPONENT redlock_dev)
install(FILES redlock.h redlock_status.h redlock_async.h redlock.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    COMPONENT redlock_dev)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/redlock.pc DESTINATION ${pc_dir} COMPONENT redlock_dev)

# redlock_page(section component): installs a manual page
function(redlock_page section component)
    set(in ${CMAKE_CURRENT_SOURCE_DIR}/man/redlock.${section})
    set(out ${CMAKE_CURRENT_BINARY_DIR}/man/redlock.${section}.gz)
    add_custom_command(OUTPUT ${out} COMMAND gzip -9nc ${in} > ${out} DEPENDS ${in}
        COMMENT "Manual page redlock(${section})" VERBATIM)
    add_custom_target(redlock_man_${section} ALL DEPENDS ${out})
    install(FILES ${out} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT ${component})
endfunction()
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/man)
redlock_page(1 redlock_tools)
redlock_page(3 redlock_dev)
redlock_page(7 redlock_dev)

# The Python package, in the component of python3-redlock. Debian's python3 searches this directory below /usr.
set(REDLOCK_PYTHON_DIR lib/python3/dist-packages CACHE STRING "where Python looks for packages, below the prefix")
set(python ${CMAKE_CURRENT_SOURCE_DIR}/python/redlock)
install(FILES ${python}/__init__.py ${python}/_c.py ${python}/aio.py ${python}/py.typed
    DESTINATION ${REDLOCK_PYTHON_DIR}/redlock COMPONENT redlock_python)

# find_package(redlock): the target redlock::redlock
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/redlock)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/redlock-config-version.cmake
    VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(EXPORT redlock NAMESPACE redlock:: DESTINATION ${package_dir} FILE redlock-config.cmake COMPONENT redlock_dev)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/redlock-config-version.cmake DESTINATION ${package_dir} COMPONENT redlock_dev)
