# lockstep-translate: the program and the library that translate with an exported model and need
# neither torch nor what else lockstep links (docs/export.md, "On the edge"). Of src/ they compile the
# sources below, of SentencePiece what encodes and decodes, from its source, which scripts/setup puts
# into the virtual environment: static libraries of it are in no distribution. With
# LOCKSTEP_EDGE_ONLY nothing else is built, for this machine or, with a toolchain file, for another.
set(LOCKSTEP_SENTENCEPIECE "${CMAKE_SOURCE_DIR}/.venv/sentencepiece" CACHE PATH
    "folder with src/ and third_party/ of SentencePiece's source, 0.2.0")
if(NOT EXISTS "${LOCKSTEP_SENTENCEPIECE}/src/sentencepiece_processor.h")
  set(why "no source of SentencePiece in ${LOCKSTEP_SENTENCEPIECE} (LOCKSTEP_SENTENCEPIECE); scripts/setup puts it there")
  if(LOCKSTEP_EDGE_ONLY)
    message(FATAL_ERROR "${why}")
  endif()
  message(STATUS "lockstep-translate is not built: ${why}")
  return()
endif()
find_package(Threads REQUIRED)
include(Unity)

# fmt: the copy in torch's wheel, as for all of lockstep, or Debian's libfmt-dev.
file(GLOB edge_wheel "${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch/include")
find_path(LOCKSTEP_FMT fmt/format-inl.h PATHS ${TorchWheel_HOME}/include ${edge_wheel} /usr/include
          NO_CMAKE_FIND_ROOT_PATH REQUIRED)

# Options of every object of the edge: what is not called is not linked.
add_library(lockstep_edge_flags INTERFACE)
target_compile_features(lockstep_edge_flags INTERFACE cxx_std_20)
target_compile_options(lockstep_edge_flags INTERFACE -ffunction-sections -fdata-sections -fvisibility=hidden)
target_link_libraries(lockstep_edge_flags INTERFACE Threads::Threads)

# SentencePiece without its trainer, with its own copy of protobuf-lite.
set(spm "${LOCKSTEP_SENTENCEPIECE}")
file(GLOB edge_protobuf "${spm}/third_party/protobuf-lite/*.cc")
list(FILTER edge_protobuf EXCLUDE REGEX "io_win32")
set(edge_subword bpe_model char_model error filesystem model_factory model_interface normalizer
    sentencepiece_processor unigram_model util word_model builtin_pb/sentencepiece.pb
    builtin_pb/sentencepiece_model.pb)
list(TRANSFORM edge_subword PREPEND "${spm}/src/")
list(TRANSFORM edge_subword APPEND ".cc")
file(STRINGS "${spm}/VERSION.txt" edge_spm_version LIMIT_COUNT 1)
file(GENERATE OUTPUT "${CMAKE_BINARY_DIR}/edge/config.h"
     CONTENT "#define VERSION \"${edge_spm_version}\"\n#define PACKAGE \"sentencepiece\"\n#define PACKAGE_STRING \"sentencepiece\"\n")
add_library(lockstep_edge_subword OBJECT ${edge_protobuf} ${edge_subword}
            "${spm}/third_party/absl/flags/flag.cc")
target_link_libraries(lockstep_edge_subword PRIVATE lockstep_edge_flags)
target_include_directories(lockstep_edge_subword SYSTEM PRIVATE "${CMAKE_BINARY_DIR}/edge" "${spm}" "${spm}/src"
                           "${spm}/src/builtin_pb" "${spm}/third_party" "${spm}/third_party/protobuf-lite")
target_compile_definitions(lockstep_edge_subword PRIVATE HAVE_PTHREAD=1 _USE_INTERNAL_STRING_VIEW)
target_compile_options(lockstep_edge_subword PRIVATE -w)  # another project's
lockstep_unity(lockstep_edge_subword 12)
set_target_properties(lockstep_edge_subword PROPERTIES UNITY_BUILD_CODE_AFTER_INCLUDE
    "#ifdef PROTOBUF_NAMESPACE\n#include <google/protobuf/port_undef.inc>\n#endif")  # some leave its macros defined

# Kernels, once an instruction set, as in cmake/Layers.cmake, but only those that decode.
set(edge_isa attention attention_dot decoding elementwise embedding gelu layer_norm packed_product_dot panel_packing)
foreach(isa ${LOCKSTEP_ISA_SETS})
  set(files ${edge_isa})
  if(isa STREQUAL "amx")
    continue()  # nothing that decodes
  elseif(isa MATCHES "_dot$")
    list(FILTER files INCLUDE REGEX "_dot$")
  elseif(isa MATCHES "_vnni$")
    set(files packed_product_dot)
  endif()
  list(TRANSFORM files PREPEND "${CMAKE_SOURCE_DIR}/src/kernels/")
  list(TRANSFORM files APPEND "_isa.cpp")
  add_library(lockstep_edge_${isa} OBJECT ${files})
  target_include_directories(lockstep_edge_${isa} PRIVATE "${CMAKE_SOURCE_DIR}/src")
  target_link_libraries(lockstep_edge_${isa} PRIVATE lockstep_edge_flags)
  lockstep_isa_options(lockstep_edge_${isa} ${isa})
  list(APPEND edge_objects $<TARGET_OBJECTS:lockstep_edge_${isa}>)
  set_target_properties(lockstep_edge_${isa} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endforeach()

file(GLOB edge_decode CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/decode/*.cpp")
set(edge_sources base/text base/whole_file data/tokenize/subword data/tokenize/translation_tokenizer edge/edge_reader
    edge/edge_translator edge/edge_vocabulary edge/translate formats/crc32c kernels/kernel_table)
list(TRANSFORM edge_sources PREPEND "${CMAKE_SOURCE_DIR}/src/")
list(TRANSFORM edge_sources APPEND ".cpp")
add_library(lockstep_translate_library STATIC ${edge_decode} ${edge_sources} ${edge_objects}
            "${CMAKE_SOURCE_DIR}/cmake/fmt_functions.cpp" $<TARGET_OBJECTS:lockstep_edge_subword>)
target_link_libraries(lockstep_translate_library PUBLIC lockstep_edge_flags)
target_include_directories(lockstep_translate_library PUBLIC "${CMAKE_SOURCE_DIR}/src")
target_include_directories(lockstep_translate_library SYSTEM PRIVATE "${LOCKSTEP_FMT}" "${spm}/src")
target_compile_definitions(lockstep_translate_library PRIVATE LOCKSTEP_DECODING_KERNELS
                           LOCKSTEP_VERSION="${PROJECT_VERSION}")
set_target_properties(lockstep_translate_library lockstep_edge_subword PROPERTIES
                      POSITION_INDEPENDENT_CODE ON)
set_target_properties(lockstep_translate_library PROPERTIES OUTPUT_NAME lockstep-translate)
lockstep_unity(lockstep_translate_library 12)

add_executable(lockstep_translate src/lockstep_translate.cpp)
target_link_libraries(lockstep_translate PRIVATE lockstep_translate_library)
target_include_directories(lockstep_translate SYSTEM PRIVATE "${LOCKSTEP_FMT}")
target_compile_definitions(lockstep_translate PRIVATE LOCKSTEP_VERSION="${PROJECT_VERSION}")
target_link_options(lockstep_translate PRIVATE "LINKER:--gc-sections" "LINKER:--as-needed")
set_target_properties(lockstep_translate PROPERTIES OUTPUT_NAME lockstep-translate
                      RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
