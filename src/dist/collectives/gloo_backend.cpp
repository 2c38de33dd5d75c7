#include "dist/collectives/gloo_backend.h"

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

namespace lockstep {

c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    int rank, int size,
                                                    const GlooEndpoint& endpoint,
                                                    std::chrono::milliseconds connect_timeout) {
  using Group = c10d::ProcessGroupGloo;
  // Two ranks connect when they first talk: few operations go through Gloo, and each only to some
  // ranks, while all pairs of 64 ranks are 2,016 connections.
  constexpr bool kLazy = true;
  auto options = Group::Options::create(connect_timeout);
  if (endpoint.interfaces.empty()) {
    options->devices.push_back(Group::createDeviceForHostname(endpoint.address, kLazy));
  }
  for (const std::string& name : endpoint.interfaces) {
    options->devices.push_back(Group::createDeviceForInterface(name, kLazy));
  }
  return c10::make_intrusive<Group>(store, rank, size, options);
}

}  // namespace lockstep
