# Installation and the CMake package.

include(CMakePackageConfigHelpers)

get_property(PARSIMONY_ROOMS GLOBAL PROPERTY PARSIMONY_ROOMS)
foreach(room IN LISTS PARSIMONY_ROOMS)
  # Who does not ask for these need not have libtorch.
  if(room IN_LIST PARSIMONY_TORCH_ROOMS)
    set(export parsimonyTorchTargets)
  else()
    set(export parsimonyTargets)
  endif()
  install(TARGETS parsimony_${room} EXPORT ${export} COMPONENT dev)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/${room}/" COMPONENT dev
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/parsimony/${room}"
    FILES_MATCHING PATTERN "*.h" PATTERN "*_impl.h" EXCLUDE)
endforeach()
if(TARGET parsimony)
  install(TARGETS parsimony COMPONENT command)
  install(FILES "${PROJECT_SOURCE_DIR}/api/networks.zip" COMPONENT command
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/parsimony")
  # Manual pages and completions, by the command itself.
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
  COMPONENT dev DESTINATION "${package_folder}")
install(EXPORT parsimonyTargets NAMESPACE parsimony::
  COMPONENT dev DESTINATION "${package_folder}")
if(PARSIMONY_TORCH)
  install(EXPORT parsimonyTorchTargets NAMESPACE parsimony::
    COMPONENT dev DESTINATION "${package_folder}")
endif()
