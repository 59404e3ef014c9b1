# SPDX-License-Identifier: MIT
#
# package.cmake - Debian packages, by CPack:
#
#     cmake --workflow --preset deb
#
# libparataxis0.1 has the shared library, libparataxis-dev what a compiler
# needs, the static library included. One build makes one flavor, so the static
# one is a build of its own inside this one.
if(NOT BUILD_SHARED_LIBS)
    message(FATAL_ERROR "PARATAXIS_PACKAGE: the outer build is the shared one")
endif()

include(ExternalProject)
ExternalProject_Add(parataxis_static
    SOURCE_DIR "${PROJECT_SOURCE_DIR}"
    BINARY_DIR "${PROJECT_BINARY_DIR}/static"
    PREFIX "${PROJECT_BINARY_DIR}/static-stamps"
    CMAKE_CACHE_ARGS
        -DBUILD_SHARED_LIBS:BOOL=OFF
        -DPARATAXIS_BUILD_TESTS:BOOL=OFF
        -DPARATAXIS_BUILD_EXAMPLES:BOOL=OFF
        -DPARATAXIS_CONTEXT:STRING=${PARATAXIS_CONTEXT}
        -DPARATAXIS_POLLER:STRING=${PARATAXIS_POLLER}
        -DCMAKE_BUILD_TYPE:STRING=${CMAKE_BUILD_TYPE}
        -DCMAKE_C_COMPILER:FILEPATH=${CMAKE_C_COMPILER}
        -DCMAKE_C_FLAGS:STRING=${CMAKE_C_FLAGS}
        -DCMAKE_C_FLAGS_RELWITHDEBINFO:STRING=${CMAKE_C_FLAGS_RELWITHDEBINFO}
        -DCMAKE_INSTALL_PREFIX:PATH=${CMAKE_INSTALL_PREFIX}
        -DCMAKE_INSTALL_LIBDIR:STRING=${CMAKE_INSTALL_LIBDIR}
    BUILD_ALWAYS ON
    INSTALL_COMMAND "")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT
    "libparataxis maintainers <libparataxis@packages.invalid>" CACHE STRING
    "Who maintains the packages")
# The packages' own descriptions begin with a summary.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(CPACK_PACKAGING_INSTALL_PREFIX "${CMAKE_INSTALL_PREFIX}")
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_INSTALL_CMAKE_PROJECTS
    "${PROJECT_BINARY_DIR}/static;parataxis;ALL;/"
    "${PROJECT_BINARY_DIR};parataxis;ALL;/")

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SOURCE libparataxis)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(deb_version "${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")

set(runtime_package libparataxis${soversion})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME ${runtime_package})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION
    "cooperative fibers and structured concurrency (library)
Fibers that take turns on one thread, with semaphores, mutexes, waitgroups,
timeouts, cancellation and groups that no fiber outlives.
.
This package contains the shared library.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)

set(development_package libparataxis-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME ${development_package})
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION
    "cooperative fibers and structured concurrency (development)
Fibers that take turns on one thread, with semaphores, mutexes, waitgroups,
timeouts, cancellation and groups that no fiber outlives.
.
This package contains the headers, the static library, and the files by which
pkg-config and CMake find them.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "${runtime_package} (= ${deb_version})")

# The linker's cache is renewed by a trigger; the scripts that CPack adds for it
# are taken out again.
set(package_dir "${PROJECT_BINARY_DIR}/package")
file(WRITE "${package_dir}/triggers" "activate-noawait ldconfig\n")
file(WRITE "${package_dir}/shlibs"
    "libparataxis ${soversion} ${runtime_package} (>= ${PROJECT_VERSION})\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA
    "${package_dir}/triggers" "${package_dir}/shlibs")

set(CPACK_POST_BUILD_SCRIPTS
    "${PROJECT_SOURCE_DIR}/cmake/package_finish.cmake")

# What each package says of itself below /usr/share/doc.
file(STRINGS "${PROJECT_SOURCE_DIR}/LICENSE" license)
list(FILTER license EXCLUDE REGEX "^MIT License$")
list(FILTER license INCLUDE REGEX "^Copyright")
list(GET license 0 copyright)
string(REGEX REPLACE "^Copyright \\(c\\) " "" copyright "${copyright}")
file(READ "${PROJECT_SOURCE_DIR}/LICENSE" license)
string(REGEX REPLACE "^.*(Permission is hereby granted)" "\\1"
    license "${license}")
string(STRIP "${license}" license)
string(REPLACE "\n\n" "\n.\n" license "${license}")
string(REPLACE "\n" "\n " license "${license}")
file(WRITE "${package_dir}/copyright"
"Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: libparataxis

Files: *
Copyright: ${copyright}
License: Expat

License: Expat
 ${license}
")
# The time is SOURCE_DATE_EPOCH's, where that is set.
string(TIMESTAMP package_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE "${package_dir}/changelog.Debian"
"libparataxis (${deb_version}) unstable; urgency=medium

  * Version ${PROJECT_VERSION}; see changelog.gz for what is new.

 -- ${CPACK_PACKAGE_CONTACT}  ${package_date}
")
file(COPY "${PROJECT_SOURCE_DIR}/CHANGELOG.md" DESTINATION "${package_dir}")
file(RENAME "${package_dir}/CHANGELOG.md" "${package_dir}/changelog")
find_program(gzip gzip REQUIRED)
mark_as_advanced(gzip)
foreach(file changelog.Debian changelog)
    execute_process(
        COMMAND "${gzip}" -9 -n -c "${package_dir}/${file}"
        OUTPUT_FILE "${package_dir}/${file}.gz"
        COMMAND_ERROR_IS_FATAL ANY)
endforeach()
foreach(component runtime development)
    install(FILES
        "${package_dir}/copyright"
        "${package_dir}/changelog.gz"
        "${package_dir}/changelog.Debian.gz"
        DESTINATION "${CMAKE_INSTALL_DATAROOTDIR}/doc/${${component}_package}"
        COMPONENT ${component})
endforeach()

include(CPack)
