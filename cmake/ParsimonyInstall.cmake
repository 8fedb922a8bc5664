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
  install(TARGETS parsimony_${room} EXPORT ${export})
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/${room}/"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/parsimony/${room}"
    FILES_MATCHING PATTERN "*.h" PATTERN "*_impl.h" EXCLUDE)
endforeach()
if(TARGET parsimony)
  install(TARGETS parsimony)
  install(FILES "${PROJECT_SOURCE_DIR}/api/networks.zip"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/parsimony")
  if(TARGET parsimony_component)
    install(TARGETS parsimony_component DESTINATION "${CMAKE_INSTALL_LIBDIR}/parsimony")
  endif()
endif()

set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/parsimony")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/parsimonyConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/parsimonyConfig.cmake" INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/parsimonyConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/parsimonyConfig.cmake"
  "${PROJECT_BINARY_DIR}/parsimonyConfigVersion.cmake" DESTINATION "${package_folder}")
install(EXPORT parsimonyTargets NAMESPACE parsimony:: DESTINATION "${package_folder}")
if(PARSIMONY_TORCH)
  install(EXPORT parsimonyTorchTargets NAMESPACE parsimony:: DESTINATION "${package_folder}")
endif()
