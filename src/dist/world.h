// The ranks of a run: agreement and collective operations. One World a process.
//
// Every rank calls the same operations in the same order. Several may be under way at once, but all
// are started by one thread at a time, in that same order on every rank. CUDA tensors go through
// NCCL. CPU tensors go through shared memory when all ranks are on one machine (local_group.h) and
// through Gloo otherwise; sums over several machines are taken on each machine through shared
// memory first, so that one rank of each talks over the network. A World of one rank opens no
// connection and its operations do nothing.
//
// What holds for sums: every rank gets the same bits. On one machine they are taken in the order of
// the ranks, 16-bit types in fp32 with one rounding, so they do not depend on how an array is cut
// into operations. Over the network that holds for two machines, or two ranks without shared memory
// (a + b = b + a); with more, the order of summation follows each element's place in the ring, so
// the bits repeat from run to run only for the same places of the ranks and the same cuts. A 16-bit
// sum over machines is rounded on each machine and again between them.
//
// Errors: a dead peer, a cut network or a timeout is a MachineError that names operation, its
// number, this rank and what the transport said: through shared memory the rank that died or hangs,
// through the network an address at most, often that of a second victim. A World that failed once
// stays failed.
#pragma once

#include <torch/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dist/launch_environment.h"

namespace lockstep {

struct WorldOptions {
  std::chrono::seconds timeout{1800};  // of one operation: longer than the slowest checkpoint
  std::chrono::seconds connect_timeout{300};  // for all ranks to appear and connect
  std::string device = "cpu";                 // "cpu" or "cuda": what gradients live on
  // Ranks of one machine exchange CPU tensors through shared memory instead of the network.
  bool shared_memory = true;
  std::string machine;  // ranks that say the same are on one machine; empty: found out
};

struct Operation {
  uint64_t sequence = 0;  // counts from 1; 0: none yet
  std::string name;
};

// Waits for one started operation and makes its result visible; call exactly once.
// Throws MachineError. For CUDA it orders the current stream behind the operation instead.
using Completion = std::function<void()>;

class Connections;

class World {
 public:
  // Connects to all other ranks; returns when all are connected.
  // Throws MachineError (rank 0's port in use, missing ranks by number, no route) and ConfigError
  // (an environment or a device that cannot be).
  World(const LaunchEnvironment& environment, const WorldOptions& options);
  // After a clean run waits, up to a few seconds, for the others to be done with their operations;
  // after a failure, or while an exception passes, waits for nothing: operations that are still
  // under way are left to the end of the process, which the others notice.
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return environment_.rank; }
  int size() const { return environment_.size; }
  bool is_leader() const { return environment_.rank == 0; }
  const LaunchEnvironment& environment() const { return environment_; }

  // In place. `tensor`: any shape, contiguous; fp32, fp64, fp16, bf16 or int64; alike on all ranks.
  void all_reduce_sum(const torch::Tensor& tensor);
  // As above, not waited for: `tensor` must not be touched before the completion was called.
  // `label` says what it is, for errors: "gradient bucket 3".
  Completion start_all_reduce_sum(const torch::Tensor& tensor, const std::string& label);
  // Of small figures on the CPU, whatever the device.
  void all_reduce_sum(std::span<double> values);
  void all_reduce_max(std::span<double> values);

  // `tensor` of every rank becomes that of `root`.
  void broadcast(const torch::Tensor& tensor, int root);
  // `flat` [cuts.back()], contiguous, any type: rank r holds the right elements [cuts[r], cuts[r +
  // 1]); on return every rank has all of them. `cuts`: size() + 1 entries, ascending from 0, alike
  // on all ranks; slices may be empty and of different lengths.
  void all_gather_slices(const torch::Tensor& flat, std::span<const int64_t> cuts);
  // Any bytes from each rank, lengths may differ; the result is indexed by rank, alike on all.
  std::vector<std::string> all_gather_strings(const std::string& mine);
  void barrier();

  // The ranks whose values are not those of rank 0, ascending; alike on all ranks.
  // `values` has the same length on every rank.
  std::vector<int> all_equal(std::span<const uint64_t> values);
  // Throws MachineError naming `name` and the ranks that differ from rank 0, on every rank.
  void check_equal(const std::string& name, uint64_t fingerprint);

  // The operation that was started last: what a report on a hang or a failure wants to know.
  Operation last_operation() const;

 private:
  Completion start_bf16_exchange(const torch::Tensor& tensor, const std::string& label);
  Completion start_broadcast(const torch::Tensor& tensor, int root, const std::string& label);
  void reduce(const std::string& name, std::span<double> values, bool largest);

  LaunchEnvironment environment_;
  std::unique_ptr<Connections> connections_;  // none for one rank
};

}  // namespace lockstep
