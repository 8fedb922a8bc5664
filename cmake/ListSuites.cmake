# Run as a script: writes OUTPUT, which adds each suite of the GoogleTest PROGRAM as a test of LABEL
# that runs in FOLDER. Suites of many tests begin first.

execute_process(COMMAND "${PROGRAM}" --gtest_list_tests WORKING_DIRECTORY "${FOLDER}"
  OUTPUT_VARIABLE listed COMMAND_ERROR_IS_FATAL ANY)
get_filename_component(name "${PROGRAM}" NAME_WE)
string(REGEX REPLACE "[;#][^\n]*" "" listed "${listed}")
string(REPLACE "\n" ";" lines "${listed}")
set(suites)
foreach(line IN LISTS lines)
  if(line MATCHES "^([A-Za-z0-9_/]+)\\. *$")
    set(suite "${CMAKE_MATCH_1}")
    list(APPEND suites "${suite}")
    set(count_${suite} 0)
  elseif(line MATCHES "^  ")
    math(EXPR count_${suite} "${count_${suite}} + 1")
  endif()
endforeach()
set(script)
foreach(suite IN LISTS suites)
  string(APPEND script
    "add_test([=[${name}.${suite}]=] [=[${PROGRAM}]=] [=[--gtest_filter=${suite}.*]=])\n"
    "set_tests_properties([=[${name}.${suite}]=] PROPERTIES LABELS ${LABEL} "
    "COST ${count_${suite}} WORKING_DIRECTORY [=[${FOLDER}]=])\n")
endforeach()
file(WRITE "${OUTPUT}" "${script}")
