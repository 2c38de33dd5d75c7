# The module that reads Parquet, by the Arrow of the pyarrow wheel in the virtual environment: built
# where that is installed. The program loads it when it opens a first file of that kind
# (formats/parquet_file.h) and says how to get it where it is not there.
execute_process(
  COMMAND "${LOCKSTEP_PYTHON}" -c
          "import glob, pyarrow; home = pyarrow.get_library_dirs()[0]; print(pyarrow.get_include(), *(sorted(glob.glob(home + '/lib' + name + '.so.*'))[0] for name in ('parquet', 'arrow')), sep=';')"
  OUTPUT_VARIABLE pyarrow OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
if(failed)
  message(STATUS "Parquet: no pyarrow in the virtual environment; files of it cannot be read")
else()
  list(POP_FRONT pyarrow pyarrow_include)
  message(STATUS "Parquet: ${pyarrow}")
  add_library(lockstep_parquet MODULE src/formats/parquet/arrow_reader.cpp)
  target_link_libraries(lockstep_parquet PRIVATE lockstep_flags ${pyarrow})
  target_include_directories(lockstep_parquet SYSTEM PRIVATE "${pyarrow_include}")
  set_target_properties(lockstep_parquet PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
  add_dependencies(lockstep_formats lockstep_parquet)
endif()
