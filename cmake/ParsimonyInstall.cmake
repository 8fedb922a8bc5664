# Installation and the CMake package.

include(CMakePackageConfigHelpers)

# parsimony_library(NAME EXPORT set OUTPUT file ROOMS room... DEPENDS target...): one static library of
# rooms, with the packages that they need, as the target parsimony::NAME. Which rooms there are is
# nothing to those who link it.
function(parsimony_library name)
  cmake_parse_arguments(library "" "EXPORT;OUTPUT" "ROOMS;DEPENDS" ${ARGN})
  foreach(room IN LISTS library_ROOMS)
    get_target_property(needs parsimony_${room} INTERFACE_LINK_LIBRARIES)
    list(FILTER needs EXCLUDE REGEX "^(parsimony_|\\$<LINK_ONLY:parsimony_)")
    list(APPEND packages ${needs})
    list(APPEND objects $<TARGET_OBJECTS:parsimony_${room}>)
  endforeach()
  list(REMOVE_DUPLICATES packages)
  set(target parsimony_library_${name})
  add_library(${target} STATIC ${objects})
  target_link_libraries(${target} INTERFACE ${packages} ${library_DEPENDS})
  target_compile_features(${target} INTERFACE cxx_std_20)
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX
    EXPORT_NAME ${name} OUTPUT_NAME ${library_OUTPUT})
  install(TARGETS ${target} EXPORT ${library_EXPORT} COMPONENT dev)
endfunction()

# Who does not ask for `torch` need not have libtorch.
get_property(PARSIMONY_ROOMS GLOBAL PROPERTY PARSIMONY_ROOMS)
set(core ${PARSIMONY_ROOMS})
list(REMOVE_ITEM core ${PARSIMONY_TORCH_ROOMS})
parsimony_library(parsimony EXPORT parsimonyTargets OUTPUT parsimony ROOMS ${core})
set(absent "^$")
if(PARSIMONY_TORCH)
  set(around ${PARSIMONY_ROOMS})
  list(REMOVE_ITEM around ${core})
  parsimony_library(torch EXPORT parsimonyTorchTargets OUTPUT parsimony_torch ROOMS ${around}
    DEPENDS parsimony_library_parsimony)
else()
  list(JOIN PARSIMONY_TORCH_ROOMS "|" absent)
  set(absent "^(${absent})/")
endif()
install(CODE "
  include(\"${PROJECT_SOURCE_DIR}/cmake/IncludedHeaders.cmake\")
  file(STRINGS \"${PROJECT_SOURCE_DIR}/cmake/public_headers.txt\" headers REGEX \"^[a-z]\")
  list(FILTER headers EXCLUDE REGEX \"${absent}\")
  parsimony_included_headers(headers \"${PARSIMONY_INCLUDE_ROOT}/parsimony\" \${headers})
  foreach(header IN LISTS headers)
    get_filename_component(folder \"\${header}\" DIRECTORY)
    file(INSTALL \"${PARSIMONY_INCLUDE_ROOT}/parsimony/\${header}\"
      DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}/parsimony/\${folder}\")
  endforeach()" COMPONENT dev)
if(TARGET parsimony)
  install(TARGETS parsimony COMPONENT command)
  install(FILES "${PROJECT_SOURCE_DIR}/share/networks.zip" COMPONENT command
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/parsimony")
  # Manual pages and completions, by the command itself, where it runs.
  if(NOT CMAKE_CROSSCOMPILING)
    install(CODE "
      set(parsimony_root \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\")
      set(parsimony_binary \"$<TARGET_FILE:parsimony>\")
      file(MAKE_DIRECTORY \"\${parsimony_root}/man/man1\" \"\${parsimony_root}/bash-completion/completions\"
        \"\${parsimony_root}/zsh/vendor-completions\" \"\${parsimony_root}/fish/vendor_completions.d\")
      execute_process(COMMAND \"\${parsimony_binary}\" man --out \"\${parsimony_root}/man/man1\"
        COMMAND_ERROR_IS_FATAL ANY)
      file(GLOB pages \"\${parsimony_root}/man/man1/parsimony*.1\")
      execute_process(COMMAND gzip -9nf \${pages})
      execute_process(COMMAND \"\${parsimony_binary}\" completion bash COMMAND_ERROR_IS_FATAL ANY
        OUTPUT_FILE \"\${parsimony_root}/bash-completion/completions/parsimony\")
      execute_process(COMMAND \"\${parsimony_binary}\" completion zsh COMMAND_ERROR_IS_FATAL ANY
        OUTPUT_FILE \"\${parsimony_root}/zsh/vendor-completions/_parsimony\")
      execute_process(COMMAND \"\${parsimony_binary}\" completion fish COMMAND_ERROR_IS_FATAL ANY
        OUTPUT_FILE \"\${parsimony_root}/fish/vendor_completions.d/parsimony.fish\")"
      COMPONENT command)
  endif()
  if(TARGET parsimony_component)
    install(TARGETS parsimony_component COMPONENT torch
      DESTINATION "${CMAKE_INSTALL_LIBDIR}/parsimony")
  endif()
endif()

set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/parsimony")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/parsimonyConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/parsimonyConfig.cmake" INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/parsimonyConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/parsimonyConfig.cmake"
  "${PROJECT_BINARY_DIR}/parsimonyConfigVersion.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/ParsimonyTorch.cmake"
  COMPONENT dev DESTINATION "${package_folder}")
install(EXPORT parsimonyTargets NAMESPACE parsimony::
  COMPONENT dev DESTINATION "${package_folder}")
if(PARSIMONY_TORCH)
  install(EXPORT parsimonyTorchTargets NAMESPACE parsimony::
    COMPONENT dev DESTINATION "${package_folder}")
endif()
