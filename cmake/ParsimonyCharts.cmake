# What the report's page is made of besides the data, as text within the library.

option(PARSIMONY_CHARTS "Build the chart library of the report in (npm fetches it once)" ON)

set(PARSIMONY_CHARTS_FILE "${PROJECT_BINARY_DIR}/report/charts.js")

# At configure time, so that a build that had no network tries again. Empty: a page without charts.
function(parsimony_fetch_charts)
  set(failed FALSE)
  if(PARSIMONY_CHARTS)
    execute_process(
      COMMAND "${PROJECT_SOURCE_DIR}/tools/report/bundle.sh" "${PARSIMONY_CHARTS_FILE}"
      RESULT_VARIABLE failed ERROR_VARIABLE why OUTPUT_QUIET TIMEOUT 300)
    if(failed AND NOT EXISTS "${PARSIMONY_CHARTS_FILE}")
      message(WARNING "Reports will have tables but no charts, as their library is not to be had:\n"
        "${why}Configure with -DPARSIMONY_CHARTS=OFF if that is meant.")
    endif()
  else()
    file(REMOVE "${PARSIMONY_CHARTS_FILE}")
  endif()
  if(NOT EXISTS "${PARSIMONY_CHARTS_FILE}")
    file(WRITE "${PARSIMONY_CHARTS_FILE}" "")
  endif()
endfunction()

# parsimony_embed(TARGET HEADER NAME FILE... [NAME FILE...]...): gives the target a source file with
# the function `std::string_view NAME()` for the FILEs after it, one after the other. HEADER declares
# them.
function(parsimony_embed target header)
  set(output "${PROJECT_BINARY_DIR}/${target}_texts.cc")
  set(files ${ARGN})
  list(FILTER files INCLUDE REGEX "/")
  add_custom_command(OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${output}" "-DHEADER=${header}" "-DTEXTS=${ARGN}"
      -P "${PROJECT_SOURCE_DIR}/cmake/EmbedTexts.cmake"
    DEPENDS ${files} "${PROJECT_SOURCE_DIR}/cmake/EmbedTexts.cmake"
    COMMENT "Embedding texts of ${target}" VERBATIM)
  target_sources(${target} PRIVATE "${output}")
endfunction()
