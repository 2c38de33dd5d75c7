// How long a command of a test may take.
#pragma once

namespace lockstep {

// Long enough for a slow machine whose cores have other work, and short enough that its output is
// seen before ctest ends the test (tests/CMakeLists.txt).
inline constexpr int kCommandSeconds = 240;

}  // namespace lockstep
