// A World is all ranks of a run, with their collective operations. There is one World per process.
//
// Every rank calls the same operations in the same order. Several may run at once, but one thread
// at a time starts them, in that same order on every rank. CUDA tensors go through NCCL. CPU
// tensors go through shared memory when all ranks are on one machine (local_group.h). With several
// machines, sums, gathers and barriers go through shared memory on each and then between one rank
// of each (mesh.h); broadcasts go through Gloo. A World of one rank opens no connection, and its
// operations do nothing.
//
// Guarantee for sums of CPU tensors: every rank gets the same bits. Sums are taken in pairs of
// neighbours (kernels/kernel_table.h), 16-bit types in fp32 with one rounding, so they do not
// depend on how an array is cut into operations. With several machines this holds for the ranks of
// each machine and then for the machines: 16-bit types are rounded twice, and the bits are those of
// one machine only where machines have as many ranks each, a power of two.
//
// Errors: when a peer ended, is stopped, hangs, was cut off or issued another operation, a
// MachineError names it, its host and what it did last, and this rank's operation. The ranks'
// heartbeats determine this (heartbeat.h); the transport only says that something is wrong. All
// ranks name the same peer. A World that failed once stays failed.
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
  std::chrono::seconds timeout{1800};  // of one operation; longer than the slowest checkpoint
  std::chrono::seconds connect_timeout{300};  // for all ranks to appear and connect
  std::string device = "cpu";                 // where gradients live: "cpu" or "cuda"
  // GPU tensors are exchanged as copies in host memory, like those of CPUs, and not by NCCL, which
  // refuses ranks that share a GPU.
  bool through_host = false;
  // Ranks of one machine exchange CPU tensors through shared memory instead of the network.
  bool shared_memory = true;
  int streams = 4;      // TCP connections between two machines: a long path needs several windows
  std::string machine;  // ranks with the same text are on one machine; empty: detected
  double lost_seconds = 5;    // a rank without a sign of life for this long is lost; 0: never
  double stall_seconds = 15;  // a rank that others wait for is reported after this; 0: never
};

// The ranks that take part in an operation.
enum class Reach {
  kAll,
  kMachine,  // those that share memory with this rank; only itself if none does
  kAlone,    // only this one: nothing to do
};

struct Operation {
  uint64_t sequence = 0;  // counts from 1; 0: none yet
  std::string name;
};

// Waits for one started operation and makes its result visible; call it exactly once. Throws
// MachineError. For CUDA it makes the current stream wait for the operation instead.
using Completion = std::function<void()>;

class Collectives;
class Heartbeat;
class RankProgress;

class World {
 public:
  // Connects to all other ranks; returns when all are connected. Throws MachineError (rank
  // 0's port in use, missing ranks by number, no route) and ConfigError (an impossible
  // environment or device).
  World(const LaunchEnvironment& environment, const WorldOptions& options);
  // For an end that all ranks have agreed on, before a rank throws: waits up to a few seconds until
  // all have come to this. Collective; the last operation.
  void say_farewell();
  // After a clean run, waits up to a few seconds for the others to finish their operations. After a
  // failure, or during stack unwinding, waits for nothing: operations still running are left to the
  // end of the process, which the others notice.
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return environment_.rank; }
  int size() const { return environment_.size; }
  bool is_leader() const { return environment_.rank == 0; }
  const LaunchEnvironment& environment() const { return environment_; }
  // neighbours() returns the ranks that share memory with this one, including itself, ascending;
  // machines() returns such a list for every machine, the same on all ranks.
  const std::vector<int>& neighbours() const;
  const std::vector<std::vector<int>>& machines() const { return machine_ranks_; }

  // Sums in place. `tensor`: any shape, contiguous; fp32, fp64, fp16, bf16 or int64; same shape and
  // type on all ranks.
  void all_reduce_sum(const torch::Tensor& tensor);
  // Starts the same sum without waiting: `tensor` must not be touched before the completion was
  // called. `label` describes it in errors: "gradient bucket 3".
  Completion start_all_reduce_sum(const torch::Tensor& tensor, const std::string& label,
                                  Reach reach = Reach::kAll);
  // Sums small figures on the CPU, whatever the device.
  void all_reduce_sum(std::span<double> values);
  // Starts the same sum without waiting: over the network it takes no longer than the operations
  // that run beside it. `values` must not be touched until the completion was called.
  Completion start_all_reduce_sum(std::span<double> values, const std::string& label,
                                  Reach reach = Reach::kAll);
  void all_reduce_max(std::span<double> values);

  // Copies `tensor` of rank `root` to every rank.
  void broadcast(const torch::Tensor& tensor, int root);
  // Copies `tensor` of rank `from` to rank `to`; only these two ranks take part.
  void transfer(const torch::Tensor& tensor, int from, int to);
  // `flat` [cuts.back()], contiguous, any type: rank r holds the right elements [cuts[r], cuts[r +
  // 1]); on return every rank has all of them. `cuts`: size() + 1 entries, ascending from 0, the
  // same on all ranks; slices may be empty and of different lengths.
  void all_gather_slices(const torch::Tensor& flat, std::span<const int64_t> cuts);
  // Gathers bytes of any length from each rank; the result is indexed by rank and the same on all.
  std::vector<std::string> all_gather_strings(const std::string& mine);
  void barrier();

  // Returns the ranks whose values differ from those of rank 0, ascending; the same on all ranks.
  // `values` has the same length on every rank.
  std::vector<int> all_equal(std::span<const uint64_t> values);

  // Throws MachineError when an operation on GPUs failed that was started since the last call;
  // other operations tell when they are waited for. Call it when the host has waited for its GPU.
  void check_gpu_operations();

  // Returns the operation that was started last, for reports on a hang or a failure.
  Operation last_operation() const;

  // Progress of this rank: the training loop marks its phases and steps there.
  RankProgress& progress();
  // What all ranks know of each other.
  Heartbeat& heartbeat() { return *heartbeat_; }

 private:
  Completion start_broadcast(const torch::Tensor& tensor, int root, const std::string& label);
  void reduce(const std::string& name, std::span<double> values, bool largest);

  LaunchEnvironment environment_;
  std::vector<std::vector<int>> machine_ranks_;
  std::unique_ptr<Heartbeat> heartbeat_;      // with one rank it does nothing
  std::unique_ptr<Collectives> collectives_;  // null with one rank
};

}  // namespace lockstep
