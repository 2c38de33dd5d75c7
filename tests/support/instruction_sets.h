// The instruction sets of the kernels that the CPU at hand has.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "kernels/kernel_table.h"

namespace lockstep {

inline std::vector<const Kernels*> kernels_here() {
  std::vector<const Kernels*> out;
  for (const char* isa : kInstructionSets) {
    if (const Kernels* table = kernels_for(isa)) out.push_back(table);
  }
  return out;
}

// Runs `body` with each of them.
inline void for_each_isa(const std::function<void()>& body) {
  for (const Kernels* table : kernels_here()) {
    SCOPED_TRACE(table->isa);
    use_kernels(table);
    body();
    use_kernels(nullptr);
  }
}

}  // namespace lockstep
