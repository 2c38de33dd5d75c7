# Writes OUTPUT, a C++ file with a function that does nothing and returns 0 for each of the functions of CUDA's
# libraries that the LIBRARIES of libtorch ask for and OBJECTS lack:
#     cmake -DNM=nm -DLIBRARIES=a.so|b.so -DOBJECTS=a.o|b.o -DOUTPUT=rest.cpp -P hollow_cuda.cmake
string(REPLACE "|" ";" LIBRARIES "${LIBRARIES}")
string(REPLACE "|" ";" OBJECTS "${OBJECTS}")
execute_process(COMMAND "${NM}" -D --undefined-only ${LIBRARIES} OUTPUT_VARIABLE asked
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${NM}" --defined-only ${OBJECTS} OUTPUT_VARIABLE there COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "U (__)?(cu[A-Z]|cuda|cublas|cudnn|cufft|cusparse|nccl|nvrtc)[A-Za-z0-9_]*" asked "${asked}")
list(REMOVE_DUPLICATES asked)
set(functions "")
foreach(name ${asked})
  string(SUBSTRING "${name}" 2 -1 name)
  if(NOT there MATCHES " T ${name}\n")
    string(APPEND functions "int ${name}() { return 0; }\n")
  endif()
endforeach()
file(WRITE "${OUTPUT}" "extern \"C\" {\n${functions}}\n")
