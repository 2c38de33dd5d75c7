# The module for GPUs (dist/collectives/cuda.h), built where the wheel of torch is a CUDA build and the headers
# of CUDA and NCCL are there: in the wheels that torch brings and two small ones that scripts/setup
# adds (nvidia-cuda-crt, nvidia-cuda-cccl). No toolkit, no compiler of NVIDIA's, no driver.
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
endif()
