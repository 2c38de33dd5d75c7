# Torch comes from the wheel in the virtual environment that scripts/setup makes; all else is Debian's.
set(LOCKSTEP_PYTHON "${CMAKE_SOURCE_DIR}/.venv/bin/python" CACHE FILEPATH
    "the Python whose torch wheel is built against")
find_package(TorchWheel 2.13 REQUIRED)
message(STATUS "torch: ${TorchWheel_VERSION} in ${TorchWheel_HOME}")

find_package(Threads REQUIRED)
if(NOT LOCKSTEP_FUZZ)
  find_package(OpenMP REQUIRED)
endif()
find_package(ZLIB REQUIRED)
find_package(OpenSSL 3 REQUIRED COMPONENTS Crypto)
find_package(CURL REQUIRED)
find_package(LibArchive REQUIRED)
find_package(JPEG REQUIRED)  # libjpeg-turbo: parts of images, pixels of 4 bytes
find_package(PNG REQUIRED)
find_package(tomlplusplus QUIET)
if(NOT TARGET tomlplusplus::tomlplusplus)  # Ubuntu 22.04: scripts/setup takes the headers from PyPI
  get_filename_component(environment "${LOCKSTEP_PYTHON}" DIRECTORY)
  find_path(TOMLPLUSPLUS_INCLUDE "toml++/toml.h" PATHS "${environment}/../include" REQUIRED)
  add_library(tomlplusplus::tomlplusplus INTERFACE IMPORTED)
  target_include_directories(tomlplusplus::tomlplusplus INTERFACE "${TOMLPLUSPLUS_INCLUDE}")
endif()
find_package(nlohmann_json REQUIRED)
find_path(PROTOZERO_INCLUDE protozero/pbf_reader.hpp REQUIRED)  # headers alone
find_path(BOOST_BEAST_INCLUDE boost/beast/http/parser.hpp REQUIRED)  # headers alone
find_package(ICU REQUIRED COMPONENTS uc i18n)
find_package(CLI11 REQUIRED)
find_library(SENTENCEPIECE sentencepiece REQUIRED)
find_library(SENTENCEPIECE_TRAIN sentencepiece_train REQUIRED)

# fmt is the wheel's copy, of which only the headers are there: Debian's is older and would be
# shadowed by it.
add_library(lockstep_fmt STATIC "${CMAKE_SOURCE_DIR}/cmake/fmt_functions.cpp")
target_include_directories(lockstep_fmt SYSTEM PRIVATE "${TorchWheel_HOME}/include")
set_target_properties(lockstep_fmt PROPERTIES POSITION_INDEPENDENT_CODE ON)

# What every file is compiled with.
add_library(lockstep_flags INTERFACE)
target_include_directories(lockstep_flags INTERFACE "${CMAKE_SOURCE_DIR}/src")
target_include_directories(lockstep_flags SYSTEM INTERFACE "${TorchWheel_HOME}/include")
target_compile_definitions(lockstep_flags INTERFACE LOCKSTEP_VERSION="${PROJECT_VERSION}")
target_compile_options(lockstep_flags INTERFACE -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers
                       # For the program and for its library alike (CMakeLists.txt), whose names nobody replaces.
                       -fPIC -fno-semantic-interposition
                       -Wno-restrict  # GCC 12 warns falsely about std::string (bug 105651)
                       # GCC looks for memory to free less often: a twentieth of its time.
                       $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-expand=1000>
                       $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=4000000>)
target_link_libraries(lockstep_flags INTERFACE Threads::Threads lockstep_fmt)

# Torch as a SYSTEM dependency, with one precompiled header for all folders that use it:
# <torch/torch.h> costs about 20 s a file without.
add_library(lockstep_torch STATIC "${CMAKE_SOURCE_DIR}/cmake/torch_header.cpp")
target_link_libraries(lockstep_torch PUBLIC lockstep_flags TorchWheel::torch)
# OpenMP: without it at::parallel_for runs in one thread, silently. Its functions are in the wheel's
# libgomp; the compiler's own would be a second set of threads.
target_compile_options(lockstep_torch PUBLIC ${OpenMP_CXX_FLAGS})
target_precompile_headers(lockstep_torch PRIVATE "${CMAKE_SOURCE_DIR}/cmake/torch_header.h")
target_compile_options(lockstep_torch PUBLIC -fpch-preprocess)  # without it ccache keeps nothing
