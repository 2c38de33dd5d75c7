# The module for GPUs (dist/collectives/cuda.h), built where the wheel of torch is a CUDA build and the headers
# of CUDA and NCCL are there: in the wheels that torch brings and a few that scripts/setup adds
# (nvidia-cuda-crt, nvidia-cuda-cccl). No toolkit, no driver. The kernels for GPUs (src/gpu/*.cu) are in it
# where there is a CUDA compiler of the wheel's release: for CUDA 13 scripts/setup brings it as a wheel
# (nvidia-cuda-nvcc, nvidia-nvvm), else the toolkit's serves. Without one GPUs compute with libtorch's
# operations, and this says so.
find_program(LOCKSTEP_NVCC nvcc HINTS "${TorchWheel_SITE}/nvidia/cu13/bin" PATHS /usr/local/cuda/bin
             ENV CUDA_HOME PATH_SUFFIXES bin)
if(LOCKSTEP_NVCC)
  # It refuses C++ compilers that it does not know.
  file(WRITE "${CMAKE_BINARY_DIR}/nvcc_try.cu" "__global__ void nothing() {}\n")
  execute_process(COMMAND "${LOCKSTEP_NVCC}" -ccbin "${CMAKE_CXX_COMPILER}" -std=c++20 -c nvcc_try.cu -o nvcc_try.o
                  WORKING_DIRECTORY "${CMAKE_BINARY_DIR}" RESULT_VARIABLE nvcc_failed OUTPUT_VARIABLE nvcc_words
                  ERROR_VARIABLE nvcc_words)
  if(nvcc_failed)
    message(STATUS "CUDA: ${LOCKSTEP_NVCC} does not compile here: ${nvcc_words}")
  endif()
endif()
if(LOCKSTEP_NVCC AND NOT nvcc_failed)
  # For each of these GPUs that the compiler knows (V100 only before CUDA 13), and in PTX for later ones.
  execute_process(COMMAND "${LOCKSTEP_NVCC}" --version OUTPUT_VARIABLE nvcc_version)
  string(REGEX REPLACE ".*release ([0-9]+)\\..*" "\\1" nvcc_release "${nvcc_version}")
  execute_process(COMMAND "${LOCKSTEP_NVCC}" --list-gpu-code OUTPUT_VARIABLE known_gpus)
  set(gpu_codes "")
  foreach(capability 70 75 80 86 89 90 100)
    if(known_gpus MATCHES "sm_${capability}[ \n]")
      list(APPEND gpu_codes -gencode "arch=compute_${capability},code=sm_${capability}")
      set(newest ${capability})
    endif()
  endforeach()
  list(APPEND gpu_codes -gencode "arch=compute_${newest},code=compute_${newest}")
  set(gpu_object "${CMAKE_BINARY_DIR}/gpu_kernels.o")
  add_custom_command(
    OUTPUT "${gpu_object}"
    COMMAND "${LOCKSTEP_NVCC}" -ccbin "${CMAKE_CXX_COMPILER}" -std=c++20 -O3 --threads 2 -Xcompiler=-fPIC,-Wall
            -Werror=all-warnings "-I${CMAKE_SOURCE_DIR}/src" ${gpu_codes} -MD -MF "${gpu_object}.d"
            -c "${CMAKE_SOURCE_DIR}/src/gpu/row_kernels.cu" -o "${gpu_object}"
    DEPENDS "${CMAKE_SOURCE_DIR}/src/gpu/row_kernels.cu"
    DEPFILE "${gpu_object}.d"
    COMMENT "Building kernels for GPUs"
    VERBATIM)
  add_custom_target(lockstep_gpu_kernels DEPENDS "${gpu_object}")  # compiled where they are not used, too
endif()

set(cuda_headers "")
if(TorchWheel_CUDA)
  file(GLOB folders "${TorchWheel_SITE}/nvidia/*/include")
  # A CUDA 12 wheel has a folder for each library, a CUDA 13 wheel one for most of them.
  foreach(header cuda_runtime_api.h crt/host_defines.h cuda/std/cstddef nccl.h)
    find_path(LOCKSTEP_CUDA_HEADER_OF_${header} "${header}" PATHS ${folders}
              PATH_SUFFIXES cccl NO_DEFAULT_PATH)
    mark_as_advanced(LOCKSTEP_CUDA_HEADER_OF_${header})
    if(LOCKSTEP_CUDA_HEADER_OF_${header})
      list(APPEND cuda_headers "${LOCKSTEP_CUDA_HEADER_OF_${header}}")
    else()
      list(APPEND cuda_missing "${header}")
    endif()
  endforeach()
endif()
if(NOT TorchWheel_CUDA)
  message(STATUS "CUDA: this torch is a CPU build; the program is without the module for GPUs")
elseif(cuda_missing)
  message(WARNING "CUDA: no ${cuda_missing} in the wheels; the program is without the module for "
                  "GPUs. scripts/setup installs them (nvidia-cuda-crt, nvidia-cuda-cccl).")
else()
  list(REMOVE_DUPLICATES cuda_headers)
  message(STATUS "CUDA: ${TorchWheel_CUDA}, headers from ${cuda_headers}")
  add_library(lockstep_cuda MODULE src/dist/cuda/cuda_module.cpp)
  target_link_libraries(lockstep_cuda PRIVATE lockstep_flags TorchWheel::torch
                        "${TorchWheel_HOME}/lib/libtorch_cuda.so" "${TorchWheel_HOME}/lib/libc10_cuda.so")
  target_include_directories(lockstep_cuda SYSTEM PRIVATE
                             "${CMAKE_SOURCE_DIR}/src/dist/gloo_names" ${cuda_headers})
  target_compile_definitions(lockstep_cuda PRIVATE USE_C10D_NCCL)
  set_target_properties(lockstep_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
  add_dependencies(lockstep_dist_collectives lockstep_cuda)
  string(REGEX MATCH "^[0-9]+" cuda_release "${TorchWheel_CUDA}")
  if(NOT gpu_object)
    message(STATUS "CUDA: no nvcc that works here; GPUs compute with libtorch's operations instead of kernels of our own")
  elseif(NOT nvcc_release STREQUAL cuda_release)
    message(STATUS "CUDA: ${LOCKSTEP_NVCC} is of release ${nvcc_release}, torch of ${cuda_release}; GPUs "
                   "compute with libtorch's operations instead of kernels of our own")
  else()
    target_sources(lockstep_cuda PRIVATE "${gpu_object}")
    # CUDA's runtime is the one that libtorch_cuda brings: named here, it would have to be found in a folder
    # that differs from host to host.
    target_compile_definitions(lockstep_cuda PRIVATE LOCKSTEP_CUDA_KERNELS)
  endif()
endif()
