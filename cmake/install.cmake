# SPDX-License-Identifier: MIT
#
# install.cmake - what is installed, and how others find it.
#
# A shared and a static build may share one prefix: each brings a targets file
# of its own, and the config file picks one.
include(CMakePackageConfigHelpers)

set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/parataxis")

install(TARGETS parataxis
    EXPORT parataxis-${flavor}-targets
    LIBRARY
        DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        COMPONENT runtime
        NAMELINK_COMPONENT development
    ARCHIVE
        DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        COMPONENT development
    FILE_SET HEADERS
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        COMPONENT development
    INCLUDES # for consumers whose CMake does not know file sets
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
if(header_scope STREQUAL "PRIVATE")
    install(FILES ${parataxis_headers}
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/parataxis"
        COMPONENT development)
endif()
install(EXPORT parataxis-${flavor}-targets
    NAMESPACE parataxis::
    DESTINATION "${config_dir}"
    COMPONENT development)

configure_file(cmake/parataxis-config.cmake.in parataxis-config.cmake @ONLY)
write_basic_package_version_file(
    "${PROJECT_BINARY_DIR}/parataxis-config-version.cmake"
    COMPATIBILITY SameMinorVersion)
install(FILES
    "${PROJECT_BINARY_DIR}/parataxis-config.cmake"
    "${PROJECT_BINARY_DIR}/parataxis-config-version.cmake"
    DESTINATION "${config_dir}"
    COMPONENT development)

# parataxis.pc finds its prefix from where it lies, so that a moved prefix
# stays right. Absolute directories stay as they are.
set(pc_dir "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
    set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
    set(pc_libdir "${CMAKE_INSTALL_LIBDIR}")
else()
    file(RELATIVE_PATH way_up "/${pc_dir}" "/")
    string(REGEX REPLACE "/$" "" way_up "${way_up}")
    set(pc_prefix "\${pcfiledir}/${way_up}")
    set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
    set(pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
else()
    set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
list(TRANSFORM context_libraries PREPEND "-l" OUTPUT_VARIABLE pc_private)
list(APPEND pc_private -pthread)
list(JOIN pc_private " " pc_private)
configure_file(cmake/parataxis.pc.in parataxis.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/parataxis.pc"
    DESTINATION "${pc_dir}"
    COMPONENT development)
