// Declares the parts of a World of several ranks: its c10d process groups, the shared memory of its
// machine, and the account of its operations. Only world.cpp uses it.
//
// An operation on CPU tensors goes through shared memory alone when all ranks are on one
// machine. Sums over several machines go through each machine's shared memory to its first rank,
// through the mesh between these ranks, and back; everything else goes through Gloo. CUDA
// tensors go through NCCL.
#pragma once

#include <torch/types.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "dist/collectives/gloo_backend.h"
#include "dist/collectives/local_group.h"
#include "dist/collectives/machines.h"
#include "dist/collectives/mesh.h"
#include "dist/collectives/operation_queue.h"
#include "dist/collectives/world.h"
#include "dist/liveness/heartbeat.h"
#include "dist/liveness/peer_error.h"

namespace lockstep {

using WorkPointer = c10::intrusive_ptr<c10d::Work>;
using BackendPointer = c10::intrusive_ptr<c10d::Backend>;

// Describes an operation, for error texts and for comparing what the ranks issue.
struct OperationLabel {
  std::string name;
  int64_t numel = 0;
  const char* type = "";  // element type; empty when it has no elements
  int64_t bytes = 0;      // bytes of the elements
  // Whether a verdict ends the wait for it. False for NCCL, which is aborted instead, and for
  // Gloo's transfers between two ranks, which have no future.
  bool interruptible = true;
  bool of_some = false;  // for some ranks only: not counted, or other ranks would fall behind
  bool on_gpu = false;   // runs on the GPU, whose events tell how long it took

  OperationLabel(const char* name) : name(name) {}             // NOLINT: as a text
  OperationLabel(std::string name) : name(std::move(name)) {}  // NOLINT: as a text
  OperationLabel(std::string name, const torch::Tensor& tensor);
  OperationLabel(std::string name, int64_t doubles)
      : name(std::move(name)),
        numel(doubles),
        type("fp64"),
        bytes(doubles * static_cast<int64_t>(sizeof(double))) {}
  OperationLabel&& for_some() && {
    of_some = true;
    return std::move(*this);
  }
};

// Returns how long an operation of NCCL took that has ended; 0 where c10d does not tell.
double seconds_of_gpu(const c10d::Work& work);

class Collectives {
 public:
  // `environment` and `heartbeat` must outlive it.
  Collectives(const LaunchEnvironment& environment, Heartbeat& heartbeat);
  ~Collectives();  // like ~World()
  void connect(const WorldOptions& options);

  // Waits some seconds for the others to finish their operations; returns false when one of them
  // does not.
  bool say_farewell();

  // Returns the group of all ranks when they are on one machine, else null.
  LocalGroup* shared() const { return machines_.one() ? local_.get() : nullptr; }
  // Returns the group of this rank's machine, or null when the rank is alone
  // there or shares no memory.
  LocalGroup* neighbours() const { return local_.get(); }
  // Returns the ranks of each machine; empty when no ranks share memory.
  const std::vector<std::vector<int>>& machine_ranks() const { return machines_.ranks; }
  c10d::Backend& gloo() const { return *gloo_; }
  c10d::Backend& backend_for(const torch::Tensor& tensor) const;
  // Returns whether the tensor is on a GPU and is exchanged as a copy on the host.
  bool needs_copy(const torch::Tensor& tensor) const { return !nccl_ && !tensor.is_cpu(); }

  // Each of these counts and names one operation. They and their completions throw MachineError
  // with the heartbeat's verdict on who is at fault, if there is one. The verdict also ends what
  // waits on the CPU.
  //
  // An operation of c10d: `launch` starts it and returns its work. Gloo works on its own threads.
  template <typename Launch>
  Completion start(const OperationLabel& label, const Launch& launch);
  // Runs on the queue's thread after all that is queued.
  Completion queue(const OperationLabel& label, std::function<void()> operation);
  // Runs on this thread after all that is queued.
  void run(const OperationLabel& label, const std::function<void()>& operation);

  // Starts the sum over all ranks on several machines, of `count` elements on the CPU. All ranks
  // start these, and call their completions, in the same order.
  Completion start_sum(const OperationLabel& label, void* data, int64_t count,
                       const Summation& summation);

  // Returns [size, numel of mine], one row per rank. `mine`: [numel].
  torch::Tensor all_gather(const std::string& name, torch::Tensor mine);
  std::vector<std::string> all_gather_strings(const std::string& mine);

  // Throws MachineError when an operation on the GPU failed that was started since the last call.
  // The host must have waited for the GPU: an operation of NCCL that fails ends with whatever it
  // has.
  void check_gpu_operations();

  Operation last_operation() const;

  // Adds what this rank sent and received through c10d, which does not count it.
  void count_moved(int64_t sent, int64_t received) { account().moved().add(sent, received); }

 private:
  struct Issued {
    std::string name;
    uint64_t sequence = 0;     // 0: not an operation of all ranks
    std::string text() const;  // "NAME (operation 17 of this rank)"
  };
  template <typename Work>
  auto guard(const Issued& issued, const Work& work);
  Issued count_operation(const OperationLabel& label);
  void keep_for_check(const Issued& issued, const WorkPointer& work);
  MachineError failure(const std::string& what, const std::exception& exception);
  MachineError failure_by(const std::string& what, const std::exception& exception);
  std::string found_by_nccl() const;
  void open_heartbeat(std::chrono::milliseconds timeout);
  void wait_for(const WorkPointer& work);
  std::function<void()> or_give_up(std::function<void()> operation);
  StepAccount& account() const { return heartbeat_.progress().account(); }
  template <typename Operation>
  void timed(const OperationLabel& label, const Operation& operation);
  void remember(const WorkPointer& work);
  torch::Tensor all_gather_as_sum(const std::string& name, const torch::Tensor& mine);
  std::vector<std::string> gather_through_store(const std::string& mine,
                                                std::chrono::milliseconds timeout);
  void join_machine(const WorldOptions& options);
  void connect_machines(const WorldOptions& options, const std::string& address);
  void give_up();
  void leave_unfinished();

  const LaunchEnvironment& environment_;
  Heartbeat& heartbeat_;
  std::string who_;  // "rank 2 of 4"
  c10::intrusive_ptr<c10d::Store> store_;
  int store_rounds_ = 0;            // gathers through it
  BackendPointer gloo_, nccl_;      // nccl: only for the device "cuda", not through_host
  std::vector<int64_t> gathering_;  // of all_gather_as_sum()
  Machines machines_;
  std::unique_ptr<LocalGroup> local_;  // null for a rank alone on its machine
  std::unique_ptr<Mesh> mesh_;         // between the machines' first ranks; else null
  struct Interruption {  // shared with Gloo's callbacks, which may outlive this object
    std::mutex mutex;
    std::condition_variable changed;
    bool given_up = false;
  };
  std::shared_ptr<Interruption> interruption_ = std::make_shared<Interruption>();
  std::atomic<bool> failed_ = false;
  int exceptions_at_start_ = std::uncaught_exceptions();
  std::mutex mutex_;                                    // guards what follows
  std::vector<WorkPointer> started_;                    // may or may not have finished
  std::vector<std::pair<Issued, WorkPointer>> on_gpu_;  // for check_gpu_operations()
  std::unique_ptr<OperationQueue> queue_;  // exists with local_; last: uses all the others
};

template <typename Work>
auto Collectives::guard(const Issued& issued, const Work& work) {
  RankProgress::Waiting waiting(heartbeat_.progress(), issued.sequence);
  try {
    return work();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& exception) {
    throw failure(issued.text(), exception);
  }
}

template <typename Launch>
Completion Collectives::start(const OperationLabel& label, const Launch& launch) {
  Issued issued = count_operation(label);
  WorkPointer work;
  try {
    work = launch();
  } catch (const c10::DistError& error) {  // anything else at this point is our bug
    throw failure(issued.text(), error);
  }
  remember(work);
  if (label.on_gpu) {
    keep_for_check(issued, work);
    account().device_exchange([work] { return seconds_of_gpu(*work); });
  }
  const auto begin = StepAccount::Clock::now();
  return [this, issued, work, label, begin] {
    guard(issued, [&] { label.interruptible ? wait_for(work) : void(work->wait()); });
    if (label.on_gpu) return;
    account().exchange(label.name, begin, StepAccount::Clock::now(), label.bytes);
  };
}

// Runs the operation on the current thread and adds its begin and end to the rank's account.
template <typename Operation>
void Collectives::timed(const OperationLabel& label, const Operation& operation) {
  const auto begin = StepAccount::Clock::now();
  operation();
  account().exchange(label.name, begin, StepAccount::Clock::now(), label.bytes);
}

}  // namespace lockstep
