# The instruction sets that files named *_isa.cpp are compiled for (kernels/kernel_table.h), and the
# options of each. "generic" is what every processor of the kind has: on aarch64 it has NEON.
set(LOCKSTEP_ISA_SETS generic)
if(LOCKSTEP_FUZZ)  # clang 14 does not know the names of all
  add_compile_definitions(LOCKSTEP_GENERIC_ALONE)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND LOCKSTEP_ISA_SETS avx2 avx512 avx512_vnni avx512_dot amx)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  list(APPEND LOCKSTEP_ISA_SETS neon_dot)
endif()

function(lockstep_isa_options target isa)
  target_compile_definitions(${target} PRIVATE LOCKSTEP_ISA=${isa})
  target_compile_options(${target} PRIVATE -O3 -fno-math-errno -fno-trapping-math
                         -ffp-contract=fast -fopenmp-simd)
  if(isa STREQUAL "avx2")
    target_compile_options(${target} PRIVATE -mavx2 -mfma -mf16c)
  elseif(isa STREQUAL "avx512")
    target_compile_options(${target} PRIVATE -march=x86-64-v4 -mprefer-vector-width=512)
  elseif(isa STREQUAL "avx512_vnni")
    target_compile_options(${target} PRIVATE -march=x86-64-v4 -mavx512vnni -mprefer-vector-width=512)
  elseif(isa STREQUAL "avx512_dot")
    target_compile_options(${target} PRIVATE -march=x86-64-v4 -mavx512bf16 -mavx512vnni
                           -mprefer-vector-width=512)
  elseif(isa STREQUAL "amx")
    # GCC 12 warns of its own intrinsics' undefined operands.
    target_compile_options(${target} PRIVATE -march=x86-64-v4 -mavx512bf16 -mavx512vnni
                           -mamx-tile -mamx-bf16 -mprefer-vector-width=512 -Wno-maybe-uninitialized)
  elseif(isa STREQUAL "neon_dot")
    target_compile_options(${target} PRIVATE -march=armv8.2-a+dotprod)
  endif()
endfunction()
