// The torch wheel holds Gloo's code but not its headers. These files declare the few names that
// c10d/ProcessGroupGloo.hpp mentions, so that it parses; the functions are in libtorch_cpu. No
// object of these types is made or destroyed by code compiled here: only gloo_backend.cpp sees
// them, and it hands out the abstract c10d::Backend. Nothing here may get a definition, or it would
// displace the one in libtorch.
#pragma once

#include <chrono>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
