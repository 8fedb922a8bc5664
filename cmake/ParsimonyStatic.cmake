# For a command that runs on other distributions than the one that it was built on: the compiler's libraries and
# all that have a static form are linked into it. The distribution's packages have both forms of most libraries,
# PARSIMONY_STATIC_FOLDER those of others; compiling sees no difference. tools/package.sh bundles the rest.

set(PARSIMONY_STATIC_FOLDER "" CACHE PATH "Static libraries that the distribution does not have")

# An imported library is replaced by its static form, where there is one.
function(parsimony_static_library target)
  foreach(property IN ITEMS IMPORTED_LOCATION IMPORTED_LOCATION_NONE IMPORTED_LOCATION_RELEASE)
    get_target_property(shared ${target} ${property})
    if(shared MATCHES "/(lib[^/]+)\\.so[^/]*$")
      find_library(static NAMES "${CMAKE_MATCH_1}.a" NO_CACHE
        HINTS "${PARSIMONY_STATIC_FOLDER}")
      if(static)
        set_target_properties(${target} PROPERTIES ${property} "${static}")
      endif()
      unset(static)
    endif()
  endforeach()
endfunction()

get_property(imported DIRECTORY PROPERTY IMPORTED_TARGETS)
foreach(target IN LISTS imported)
  get_target_property(type ${target} TYPE)
  if(type MATCHES "^(SHARED|UNKNOWN)_LIBRARY$")
    parsimony_static_library(${target})
  endif()
endforeach()

# It has no CMake package; the rooms know it by its name.
find_library(PARSIMONY_RE2 NAMES libre2.a REQUIRED)
add_library(re2 STATIC IMPORTED)
set_target_properties(re2 PROPERTIES IMPORTED_LOCATION "${PARSIMONY_RE2}")

add_library(parsimony_static INTERFACE)
target_sources(parsimony_static INTERFACE "${PROJECT_SOURCE_DIR}/packaging/arc4random.cc")
target_link_options(parsimony_static INTERFACE
  -static-libstdc++ -static-libgcc LINKER:--exclude-libs,ALL)
