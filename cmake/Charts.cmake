# dygraphs (MIT licence), which makes the plots of `lockstep report` zoom: script, style and licence
# of Debian's libjs-dygraphs become texts of the program, so that a report needs no network and no
# other file. Where the package is not there plots are still drawings.
set(LOCKSTEP_DYGRAPHS /usr/share/javascript/dygraphs CACHE PATH "folder with dygraph.min.js")
set(LOCKSTEP_DYGRAPHS_LICENCE /usr/share/doc/libjs-dygraphs/copyright CACHE FILEPATH
    "its licence, which goes with it")

set(LOCKSTEP_CHART_SCRIPT "")
set(LOCKSTEP_CHART_STYLE "")
set(LOCKSTEP_CHART_LICENCE "")
if(EXISTS "${LOCKSTEP_DYGRAPHS}/dygraph.min.js" AND EXISTS "${LOCKSTEP_DYGRAPHS_LICENCE}")
  file(READ "${LOCKSTEP_DYGRAPHS}/dygraph.min.js" LOCKSTEP_CHART_SCRIPT)
  file(READ "${LOCKSTEP_DYGRAPHS}/dygraph.min.css" LOCKSTEP_CHART_STYLE)
  file(READ "${LOCKSTEP_DYGRAPHS_LICENCE}" LOCKSTEP_CHART_LICENCE)
  # Names of files that a page of its own has not.
  string(REGEX REPLACE "[/*]+# sourceMappingURL[^\n]*" "" LOCKSTEP_CHART_SCRIPT "${LOCKSTEP_CHART_SCRIPT}")
  string(REGEX REPLACE "/[*]# sourceMappingURL[^\n]*" "" LOCKSTEP_CHART_STYLE "${LOCKSTEP_CHART_STYLE}")
  string(REPLACE "--" "- -" LOCKSTEP_CHART_LICENCE "${LOCKSTEP_CHART_LICENCE}")
else()
  message(STATUS "no dygraphs (libjs-dygraphs): plots of reports do not zoom")
endif()
configure_file("${CMAKE_SOURCE_DIR}/cmake/chart_library.cpp.in"
               "${CMAKE_BINARY_DIR}/chart_library.cpp" @ONLY)
target_sources(lockstep_report_answers PRIVATE "${CMAKE_BINARY_DIR}/chart_library.cpp")
