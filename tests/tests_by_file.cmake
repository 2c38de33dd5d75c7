# Read by ctest before it runs anything: makes the tests of one program, a file of sources each, so that
# quick tests share the 0.3 s that a process takes to load torch. Tests of files that may skip stand by
# themselves, so that what is skipped is seen. ALONE: each does (the thread sanitizer follows no fork of
# a process that has had threads).
#   program, folder, ALONE                 set before
#   unit.FOLDER.FILE:SUITE,... or SUITE.NAME    the tests' names
cmake_policy(VERSION 3.25)
if(NOT EXISTS "${program}")
  add_test(unit.${folder}.not_built "${program}")
  return()
endif()
set(list "${program}_by_file.cmake")
if(NOT EXISTS "${list}" OR NOT "${list}" IS_NEWER_THAN "${program}" OR
   NOT "${list}" IS_NEWER_THAN "${CMAKE_CURRENT_LIST_FILE}")
  execute_process(COMMAND "${program}" --gtest_list_tests "--gtest_output=json:${list}.json"
                  TIMEOUT 60 OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(READ "${list}.json" all)
  string(JSON suites LENGTH "${all}" testsuites)
  # OpenMP's threads spin as little as the program's (commands/shared/computing.cpp): beside other tests they would
  # spend their time slices waiting for one another.
  set(how "LABELS unit TIMEOUT 600 ENVIRONMENT GOMP_SPINCOUNT=10000")
  set(files "")
  set(text "")
  math(EXPR last_suite "${suites} - 1")
  foreach(i RANGE ${last_suite})
    string(JSON suite GET "${all}" testsuites ${i})
    string(JSON suite_name GET "${suite}" name)
    string(JSON tests LENGTH "${suite}" testsuite)
    math(EXPR last_test "${tests} - 1")
    foreach(j RANGE ${last_test})
      string(JSON name GET "${suite}" testsuite ${j} name)
      string(JSON file GET "${suite}" testsuite ${j} file)
      get_filename_component(key "${file}" NAME_WE)
      string(REGEX REPLACE "_test$" "" key "${key}")
      if(NOT key IN_LIST files)
        list(APPEND files ${key})
        file(STRINGS "${file}" skips_${key} REGEX "SKIP" LIMIT_COUNT 1)
        set(filter_${key} "")
        set(suites_${key} "")
      endif()
      set(name "${suite_name}.${name}")
      if(skips_${key} OR ALONE)
        string(APPEND text "add_test([=[${name}]=] [=[${program}]=] [=[--gtest_filter=${name}]=])\n"
                           "set_tests_properties([=[${name}]=] PROPERTIES ${how}\n"
                           "                     SKIP_REGULAR_EXPRESSION [=[\\[  SKIPPED \\]]=])\n")
      else()
        string(APPEND filter_${key} ":${name}")
        if(NOT suite_name IN_LIST suites_${key})
          list(APPEND suites_${key} "${suite_name}")
        endif()
      endif()
    endforeach()
  endforeach()
  foreach(key IN LISTS files)
    if(filter_${key})
      list(JOIN suites_${key} "," name)
      set(name "unit.${folder}.${key}:${name}")
      string(SUBSTRING "${filter_${key}}" 1 -1 filter)
      string(APPEND text "add_test([=[${name}]=] [=[${program}]=] [=[--gtest_filter=${filter}]=])\n"
                         "set_tests_properties([=[${name}]=] PROPERTIES ${how})\n")
    endif()
  endforeach()
  file(WRITE "${list}" "${text}")
endif()
include("${list}")
