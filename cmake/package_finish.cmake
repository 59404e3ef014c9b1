# SPDX-License-Identifier: MIT
#
# package_finish.cmake - after cpack: packages without maintainer scripts.
#
# CPack adds scripts that call ldconfig to a package with a shared library;
# Debian's policy is the trigger, which package.cmake has put there.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
    return()
endif()
find_program(dpkg_deb dpkg-deb REQUIRED)
foreach(package IN LISTS CPACK_PACKAGE_FILES)
    set(tree "${CPACK_TOPLEVEL_DIRECTORY}/finish")
    file(REMOVE_RECURSE "${tree}")
    execute_process(COMMAND "${dpkg_deb}" -R "${package}" "${tree}"
        COMMAND_ERROR_IS_FATAL ANY)
    file(REMOVE "${tree}/DEBIAN/postinst" "${tree}/DEBIAN/postrm")
    execute_process(
        COMMAND "${dpkg_deb}" --root-owner-group -b "${tree}" "${package}"
        OUTPUT_QUIET
        COMMAND_ERROR_IS_FATAL ANY)
    file(REMOVE_RECURSE "${tree}")
endforeach()
