// This is the only place that sees Gloo. It makes the CPU backend and returns it as
// c10d's abstract Backend.
#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

namespace lockstep {

struct GlooEndpoint {
  std::string address;                  // numeric address of this machine to listen on
  std::vector<std::string> interfaces;  // when not empty, used instead of the address
};

// Connects this rank with all others (every rank calls it); blocks until done.
// Throws what c10d throws: c10::Error or another std::exception.
c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    int rank, int size,
                                                    const GlooEndpoint& endpoint,
                                                    std::chrono::milliseconds connect_timeout);

}  // namespace lockstep
