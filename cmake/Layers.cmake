# lockstep_folders(): the static libraries of src/, one for each line of src/LAYERS, linked in its order: each
# sees all before it, none after it. data/lines is lockstep_data_lines; lockstep_data stands for all of
# data/. What a line says of its folder:
# TORCH: its files may include torch and use the precompiled header.
# UNITY: several of its files are compiled at a time (names in unnamed namespaces are the folder's).
# WAITS: it waits for hosts, files and people rather than computing, so it is compiled at -O1.
# ISA: files named *_isa.cpp are compiled once per instruction set (kernels/kernel_table.h); of the set
# avx512_dot only those named *_dot_isa.cpp, the rest of it is avx512; those named *_amx_isa.cpp
# belong to the set amx, the rest of which is avx512_dot, and to no other.
# MODULE: no library of this kind; the program loads it.
set(LOCKSTEP_LIBRARIES "" CACHE INTERNAL "")  # in the order they are declared
set(LOCKSTEP_FOLDERS "" CACHE INTERNAL "")    # without sub-folders

# Every file that includes torch, or JSON and fmt, costs 2 to 3 s before its own first line, so a clean
# build takes several at a time. OFF: each by itself, for clang-tidy and for a shorter way from a change
# to its effect.
option(LOCKSTEP_UNITY "compile files of a folder together" ON)

function(lockstep_unity target batch)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${LOCKSTEP_UNITY} UNITY_BUILD_BATCH_SIZE ${batch})
  if(LOCKSTEP_UNITY)  # it takes unnamed namespaces of included .cpp files for those of headers
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

function(lockstep_folder name)
  cmake_parse_arguments(arg "TORCH;UNITY;ISA;WAITS" "" "" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${name}/*.cpp")
  string(REPLACE "/" "_" target "lockstep_${name}")
  if(arg_ISA)
    set(isa_sources ${sources})
    list(FILTER isa_sources INCLUDE REGEX "_isa\\.cpp$")
    list(FILTER sources EXCLUDE REGEX "_isa\\.cpp$")
  endif()
  add_library(${target} STATIC ${sources})
  target_link_libraries(${target} PUBLIC lockstep_flags)
  if(arg_TORCH)
    target_link_libraries(${target} PUBLIC lockstep_torch)
    target_precompile_headers(${target} REUSE_FROM lockstep_torch)
  endif()
  if(arg_UNITY)
    lockstep_unity(${target} 6)
  endif()
  if(arg_WAITS)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  if(arg_ISA AND isa_sources)
    set(sets generic avx2 avx512)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
      list(APPEND sets avx512_dot amx)
    endif()
    foreach(isa ${sets})
      set(isa_files ${isa_sources})
      if(isa STREQUAL "amx")
        list(FILTER isa_files INCLUDE REGEX "_amx_isa\\.cpp$")
      else()
        list(FILTER isa_files EXCLUDE REGEX "_amx_isa\\.cpp$")
      endif()
      if(isa STREQUAL "avx512_dot")
        list(FILTER isa_files INCLUDE REGEX "_dot_isa\\.cpp$")
      endif()
      add_library(${target}_${isa} OBJECT ${isa_files})
      target_link_libraries(${target}_${isa} PRIVATE lockstep_flags)
      target_compile_definitions(${target}_${isa} PRIVATE LOCKSTEP_ISA=${isa})
      target_compile_options(${target}_${isa} PRIVATE -O3 -fno-math-errno -fno-trapping-math
                             -ffp-contract=fast -fopenmp-simd)
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_${isa}>)
    endforeach()
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
      target_compile_options(${target}_avx2 PRIVATE -mavx2 -mfma -mf16c)
      target_compile_options(${target}_avx512 PRIVATE -march=x86-64-v4 -mprefer-vector-width=512)
      target_compile_options(${target}_avx512_dot PRIVATE -march=x86-64-v4 -mavx512bf16 -mavx512vnni
                             -mprefer-vector-width=512)
      # GCC 12 warns of its own intrinsics' undefined operands.
      target_compile_options(${target}_amx PRIVATE -march=x86-64-v4 -mavx512bf16 -mavx512vnni
                             -mamx-tile -mamx-bf16 -mprefer-vector-width=512
                             -Wno-maybe-uninitialized)
    endif()
  endif()
  foreach(lower ${LOCKSTEP_LIBRARIES})
    target_link_libraries(${target} PUBLIC ${lower})
  endforeach()
  set(LOCKSTEP_LIBRARIES ${LOCKSTEP_LIBRARIES} ${target} CACHE INTERNAL "")
  string(REGEX REPLACE "/.*" "" folder "${name}")
  if(NOT folder STREQUAL name)
    if(NOT TARGET lockstep_${folder})
      add_library(lockstep_${folder} INTERFACE)
    endif()
    target_link_libraries(lockstep_${folder} INTERFACE ${target})
  endif()
  set_target_properties(lockstep_${folder} PROPERTIES LOCKSTEP_TORCH ${arg_TORCH})
  list(APPEND LOCKSTEP_FOLDERS ${folder})
  list(REMOVE_DUPLICATES LOCKSTEP_FOLDERS)
  set(LOCKSTEP_FOLDERS ${LOCKSTEP_FOLDERS} CACHE INTERNAL "")
  if(name STREQUAL base)
    target_link_libraries(${target} PUBLIC ZLIB::ZLIB OpenSSL::Crypto ${CMAKE_DL_LIBS})
  elseif(name STREQUAL config)
    target_link_libraries(${target} PUBLIC tomlplusplus::tomlplusplus)
  elseif(name STREQUAL formats)
    target_link_libraries(${target} PUBLIC nlohmann_json::nlohmann_json PNG::PNG)
  elseif(name STREQUAL metrics)
    target_link_libraries(${target} PUBLIC ICU::uc)
  elseif(name STREQUAL dist/collectives)
    # The wheel has Gloo's code but not its headers.
    target_include_directories(${target} SYSTEM PRIVATE "${CMAKE_SOURCE_DIR}/src/dist/gloo_names")
  elseif(name STREQUAL data/fetch)
    target_link_libraries(${target} PUBLIC CURL::libcurl LibArchive::LibArchive)
  elseif(name STREQUAL launch/job)
    target_link_libraries(${target} PUBLIC CURL::libcurl)
  elseif(name STREQUAL data/tokenize)
    target_link_libraries(${target} PUBLIC ${SENTENCEPIECE_TRAIN} ${SENTENCEPIECE} ICU::uc ICU::i18n)
  elseif(name STREQUAL data/images)
    target_link_libraries(${target} PUBLIC JPEG::JPEG)
  elseif(name STREQUAL commands)
    target_link_libraries(${target} PRIVATE CLI11::CLI11)
  endif()
endfunction()

function(lockstep_folders)
  set(layers "${CMAKE_SOURCE_DIR}/src/LAYERS")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${layers}")
  file(STRINGS "${layers}" lines REGEX "^[a-z]")
  foreach(line ${lines})
    string(REGEX MATCH "^([a-z/]+)([A-Z ]*):" unused "${line}")
    separate_arguments(words UNIX_COMMAND "${CMAKE_MATCH_2}")
    if(NOT "MODULE" IN_LIST words)
      lockstep_folder(${CMAKE_MATCH_1} ${words})
    endif()
  endforeach()
endfunction()
