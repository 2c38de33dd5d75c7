# FindTorchWheel: headers and libraries of the torch wheel behind LOCKSTEP_PYTHON, CPU and CUDA build
# alike. Not the wheel's own TorchConfig.cmake: that of a CUDA build wants a CUDA toolkit, although
# nothing here calls CUDA but one module (cmake/Cuda.cmake).
#
#   TorchWheel_VERSION  2.13.0+cpu      TorchWheel_HOME  .../site-packages/torch
#   TorchWheel_CUDA     13.0, or empty: the CUDA release that the wheel was built with
#   TorchWheel_SITE     .../site-packages, where the wheels are that a CUDA build brings
#   TorchWheel::torch   include folders, libtorch_cpu, libc10 and the wheel's own libgomp
#
# The oldest release it takes is the argument of find_package; LOCKSTEP_TORCH_TRIED is the newest that
# was tried. Nothing of torch is loaded to find it, so a machine without a driver serves.
set(LOCKSTEP_TORCH_TRIED 2.15 CACHE STRING "newest torch that lockstep was built and tested with")

set(TorchWheel_WHY "")
execute_process(
  COMMAND "${LOCKSTEP_PYTHON}" -c
          "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
  OUTPUT_VARIABLE TorchWheel_HOME OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
if(failed)
  set(TorchWheel_WHY "${LOCKSTEP_PYTHON} is no Python that runs; scripts/setup makes it (or -DLOCKSTEP_PYTHON=...)")
elseif(NOT TorchWheel_HOME)
  set(TorchWheel_WHY "${LOCKSTEP_PYTHON} has no torch; scripts/setup installs it")
else()
  get_filename_component(TorchWheel_SITE "${TorchWheel_HOME}/.." ABSOLUTE)
  # Two lines of version.py: __version__ = '2.13.0+cpu' and cuda: Optional[str] = '13.0' (or None).
  file(STRINGS "${TorchWheel_HOME}/version.py" lines REGEX "^(__version__|cuda)[: ]")
  foreach(line ${lines})
    if(line MATCHES "^__version__ *= *'([^']+)'")
      set(TorchWheel_VERSION "${CMAKE_MATCH_1}")
    elseif(line MATCHES "^cuda[^=]*= *'([^']+)'")
      set(TorchWheel_CUDA "${CMAKE_MATCH_1}")
    endif()
  endforeach()
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" release "${TorchWheel_VERSION}")
  if(NOT release)
    set(TorchWheel_WHY "${TorchWheel_HOME}/version.py names no version; install torch again: scripts/setup")
  elseif(release VERSION_LESS TorchWheel_FIND_VERSION)
    set(TorchWheel_WHY "torch ${TorchWheel_VERSION} is too old, ${TorchWheel_FIND_VERSION} or later is needed: rm -rf .venv && scripts/setup")
  elseif(release VERSION_GREATER LOCKSTEP_TORCH_TRIED)
    message(WARNING "torch ${TorchWheel_VERSION} is newer than what lockstep was tried with "
                    "(${LOCKSTEP_TORCH_TRIED}); scripts/setup without --torch takes one that was")
  endif()
endif()

if(NOT TorchWheel_WHY)
  foreach(library torch_cpu c10)
    set(TorchWheel_${library} "${TorchWheel_HOME}/lib/lib${library}.so")
    if(NOT EXISTS "${TorchWheel_${library}}")
      set(TorchWheel_WHY "${TorchWheel_${library}} is not there: half a wheel; rm -rf .venv && scripts/setup")
    endif()
  endforeach()
endif()
if(NOT TorchWheel_WHY)
  # Strings of libstdc++'s new ABI are std::__cxx11::basic_string, and so they stand in mangled names.
  file(STRINGS "${TorchWheel_c10}" new_abi REGEX "_ZN3c105ErrorC[12].*__cxx11" LIMIT_COUNT 1)
  if(NOT new_abi)
    set(TorchWheel_WHY "torch ${TorchWheel_VERSION} was built with the C++ library's old ABI, which its wheels left with 2.6")
  endif()
  # One OpenMP runtime a process: a second one would have threads of its own for the same cores.
  file(GLOB TorchWheel_gomp "${TorchWheel_HOME}/lib/libgomp*.so*" "${TorchWheel_HOME}/../torch.libs/libgomp*.so*")
  list(LENGTH TorchWheel_gomp count)
  if(NOT count EQUAL 1)
    set(TorchWheel_WHY "expected one libgomp in ${TorchWheel_HOME}/lib, found ${count}")
  endif()
endif()

if(TorchWheel_WHY)
  message(FATAL_ERROR "${TorchWheel_WHY}")
endif()
set(TorchWheel_FOUND TRUE)

if(NOT TARGET TorchWheel::torch)
  foreach(library torch_cpu c10 gomp)
    add_library(TorchWheel::${library} SHARED IMPORTED)
    set_target_properties(TorchWheel::${library} PROPERTIES IMPORTED_LOCATION "${TorchWheel_${library}}")
  endforeach()
  add_library(TorchWheel::torch INTERFACE IMPORTED)
  set_target_properties(TorchWheel::torch PROPERTIES
    INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO"
    INTERFACE_INCLUDE_DIRECTORIES
      "${TorchWheel_HOME}/include;${TorchWheel_HOME}/include/torch/csrc/api/include"
    INTERFACE_LINK_LIBRARIES "TorchWheel::torch_cpu;TorchWheel::c10;TorchWheel::gomp"
    # What its libraries need in turn is found by their own RPATH when the program starts; the
    # linker must not look for it.
    INTERFACE_LINK_OPTIONS "LINKER:--allow-shlib-undefined")
endif()
