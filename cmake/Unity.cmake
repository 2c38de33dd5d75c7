# lockstep_unity(TARGET N): N files of a library or program are compiled at a time.
#
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
