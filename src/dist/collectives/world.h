// The ranks of a run: agreement and collective operations. One World a process.
//
// Every rank calls the same operations in the same order. Several may be under way at once, but all
// are started by one thread at a time, in that same order on every rank. CUDA tensors go through
// NCCL. CPU tensors go through shared memory when all ranks are on one machine (local_group.h).
// Sums over several machines are taken on each through shared memory first and then between one
// rank of each (mesh.h); what is not a sum goes through Gloo then. A World of one rank opens no
// connection and its operations do nothing.
//
// What holds for sums of CPU tensors: every rank gets the same bits. They are taken in the order of
// the ranks, 16-bit types in fp32 with one rounding, so they do not depend on how an array is cut
// into operations. Over several machines that holds for the ranks of each and then for the
// machines: with two roundings for 16-bit types, and other bits than on one machine.
//
// Errors: a peer that ended, stands still, hangs, was cut off or issued another operation is a
// MachineError that names it, its host and what it did last, and this rank's operation: the ranks'
// heartbeats tell (heartbeat.h), the transport only says that something is wrong. All ranks name
// the same one. A World that failed once stays failed.
#pragma once

#include <torch/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dist/rank/launch_environment.h"

namespace lockstep {

struct WorldOptions {
  std::chrono::seconds timeout{1800};  // of one operation: longer than the slowest checkpoint
  std::chrono::seconds connect_timeout{300};  // for all ranks to appear and connect
  std::string device = "cpu";                 // "cpu" or "cuda": what gradients live on
  // Ranks of one machine exchange CPU tensors through shared memory instead of the network.
  bool shared_memory = true;
  int streams = 4;      // TCP connections between two machines: long ways take more than one window
  std::string machine;  // ranks that say the same are on one machine; empty: found out
  double lost_seconds = 5;    // a rank without a sign of life for so long is lost; 0: never
  double stall_seconds = 15;  // a rank that others wait for is named after this; 0: never
};

// Which ranks an operation is for.
enum class Reach {
  kAll,
  kMachine,  // those that share memory with this rank; only itself where none does
  kAlone,    // this one: nothing to do
};

struct Operation {
  uint64_t sequence = 0;  // counts from 1; 0: none yet
  std::string name;
};

// Waits for one started operation and makes its result visible; call exactly once.
// Throws MachineError. For CUDA it orders the current stream behind the operation instead.
using Completion = std::function<void()>;

class Collectives;
class Heartbeat;
class RankProgress;

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
  // The ranks that share memory with this one, itself among them, ascending. By machine for all
  // ranks: alike on all.
  const std::vector<int>& neighbours() const;
  const std::vector<std::vector<int>>& machines() const { return machine_ranks_; }

  // In place. `tensor`: any shape, contiguous; fp32, fp64, fp16, bf16 or int64; alike on all ranks.
  void all_reduce_sum(const torch::Tensor& tensor);
  // As above, not waited for: `tensor` must not be touched before the completion was called.
  // `label` says what it is, for errors: "gradient bucket 3".
  Completion start_all_reduce_sum(const torch::Tensor& tensor, const std::string& label,
                                  Reach reach = Reach::kAll);
  // Of small figures on the CPU, whatever the device.
  void all_reduce_sum(std::span<double> values);
  // Not waited for: over the network it takes no longer than what is under way beside it. `values`
  // must stay as they are until the completion was called.
  Completion start_all_reduce_sum(std::span<double> values, const std::string& label,
                                  Reach reach = Reach::kAll);
  void all_reduce_max(std::span<double> values);

  // `tensor` of every rank becomes that of `root`.
  void broadcast(const torch::Tensor& tensor, int root);
  // `tensor` of rank `to` becomes that of rank `from`; for these two ranks only.
  void transfer(const torch::Tensor& tensor, int from, int to);
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

  // Where this rank stands: the training loop marks its phases and steps.
  RankProgress& progress();
  // What all ranks know of each other.
  Heartbeat& heartbeat() { return *heartbeat_; }

 private:
  Completion start_broadcast(const torch::Tensor& tensor, int root, const std::string& label);
  void reduce(const std::string& name, std::span<double> values, bool largest);

  LaunchEnvironment environment_;
  std::vector<std::vector<int>> machine_ranks_;
  std::unique_ptr<Heartbeat> heartbeat_;      // of one rank: stands still
  std::unique_ptr<Collectives> collectives_;  // none for one rank
};

}  // namespace lockstep
