// What a World of several ranks holds: its groups of c10d, the shared memory of its machine, and
// the account of its operations. Only world.cpp uses it.
//
// Paths of an operation on CPU tensors: through shared memory alone when all ranks are on one
// machine; sums over several machines on which ranks share memory go by machine (sum_by_machine);
// all else through Gloo. CUDA tensors go through NCCL.
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
#include <vector>

#include "base/error.h"
#include "dist/gloo_backend.h"
#include "dist/local_group.h"
#include "dist/machines.h"
#include "dist/operation_queue.h"
#include "dist/peer_error.h"
#include "dist/world.h"

namespace lockstep {

using WorkPointer = c10::intrusive_ptr<c10d::Work>;
using BackendPointer = c10::intrusive_ptr<c10d::Backend>;

class Connections {
 public:
  explicit Connections(const LaunchEnvironment& environment);
  ~Connections();  // as World's
  void connect(const WorldOptions& options);

  // The group of all ranks on one machine, or null.
  LocalGroup* shared() const { return machines_.one() ? local_.get() : nullptr; }
  // Whether sums go by machine: some ranks share a machine, not all.
  bool by_machine() const { return !machines_.one() && machines_.shared() && queue_; }
  c10d::Backend& gloo() const { return *gloo_; }
  c10d::Backend& backend_for(const torch::Tensor& tensor) const;

  // Each of these counts and names one operation. A completion and `run` throw MachineError.
  // Of c10d: `launch` starts it and returns its work. Gloo works on its own threads.
  template <typename Launch>
  Completion start(const std::string& name, const Launch& launch);
  // Behind all that is queued, on the queue's thread.
  Completion queue(const std::string& name, std::function<void()> operation);
  // On this thread, after all that is queued.
  void run(const std::string& name, const std::function<void()>& operation);

  // The sum over all ranks: over each machine through its memory, then between the machines' first
  // ranks through Gloo, then to the others through memory again. Runs within an operation.
  void sum_by_machine(const torch::Tensor& tensor, const Summation& summation);

  // [size, numel of mine], one row a rank. `mine`: [numel].
  torch::Tensor all_gather(const std::string& name, torch::Tensor mine);
  std::vector<std::string> all_gather_strings(const std::string& mine);

  Operation last_operation() const;

 private:
  template <typename Work>
  auto guard(const std::string& what, const Work& work);
  std::string count(const std::string& name);
  void remember(const WorkPointer& work);
  void join_machine(const WorldOptions& options, const GlooEndpoint& endpoint);
  void wait_for(const WorkPointer& work);
  void sum_of_leaders(const torch::Tensor& tensor, const Summation& summation);
  bool say_farewell();
  void give_up();
  void leave_unfinished();

  const LaunchEnvironment& environment_;
  std::string who_;  // "rank 2 of 4"
  c10::intrusive_ptr<c10d::Store> store_;
  BackendPointer gloo_, nccl_;  // nccl: only for the device "cuda"
  Machines machines_;
  std::unique_ptr<LocalGroup> local_;  // none for a rank alone on its machine
  BackendPointer leaders_;             // the first ranks of all machines, on these
  struct Interruption {  // shared with what Gloo calls back, perhaps after this is gone
    std::mutex mutex;
    std::condition_variable changed;
    bool given_up = false;
  };
  std::shared_ptr<Interruption> interruption_ = std::make_shared<Interruption>();
  std::atomic<bool> failed_ = false;
  int exceptions_at_start_ = std::uncaught_exceptions();
  mutable std::mutex mutex_;  // of what follows
  Operation last_;
  std::vector<WorkPointer> started_;       // and perhaps not finished
  std::unique_ptr<OperationQueue> queue_;  // with local_ or leaders_; last: it uses all the others
};

template <typename Work>
auto Connections::guard(const std::string& what, const Work& work) {
  try {
    return work();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& exception) {
    failed_ = true;
    if (local_) local_->give_up();
    throw peer_error(who_, what, exception);
  }
}

template <typename Launch>
Completion Connections::start(const std::string& name, const Launch& launch) {
  std::string what = count(name);
  WorkPointer work;
  try {
    work = launch();
  } catch (const c10::DistError& error) {  // anything else at this point is our bug
    failed_ = true;
    throw peer_error(who_, what, error);
  }
  remember(work);
  return [this, what, work] { guard(what, [&] { work->wait(); }); };
}

}  // namespace lockstep
