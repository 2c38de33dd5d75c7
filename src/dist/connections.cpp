#include "dist/connections.h"

#include <c10/util/Logging.h>

#include <cstdlib>
#include <cstring>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "dist/gloo_backend.h"
#include "dist/nccl_backend.h"
#include "dist/network.h"
#include "dist/store.h"

namespace lockstep {
namespace {

// How long a rank that is done waits for the others to be done before it closes its connections.
constexpr std::chrono::seconds kFarewell{10};

// c10d prints each failure with C++ frames before it throws; what it throws is all a person needs.
void quieten_c10d() {
  constexpr int kFatalOnly = 3;
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = kFatalOnly;
}

// Where this rank listens for the others.
GlooEndpoint choose_endpoint(const LaunchEnvironment& environment) {
  GlooEndpoint out;
  if (const char* names = std::getenv("GLOO_SOCKET_IFNAME"); names != nullptr && *names != '\0') {
    out.interfaces = split(names, ',');
    log_debug("rank {} talks over {} (GLOO_SOCKET_IFNAME)", environment.rank, names);
    return out;
  }
  LocalAddress local = local_address_towards(environment.master_address);
  if (local.loopback && environment.local_size < environment.size) {
    MachineError error("the master address {} means this machine only, but ranks run elsewhere too",
                       environment.master_address);
    error.set_cause("a name that /etc/hosts maps to 127.0.1.1 cannot be reached from outside");
    error.set_advice("set MASTER_ADDR to rank 0's address in the network between the machines");
    throw error;
  }
  log_debug("rank {} talks over {} ({})", environment.rank, local.interface, local.address);
  out.address = local.address;
  return out;
}

}  // namespace

Connections::Connections(const LaunchEnvironment& environment)
    : environment_(environment),
      who_(fmt::format("rank {} of {}", environment.rank, environment.size)) {}

void Connections::connect(const WorldOptions& options) {
  quieten_c10d();
  const int rank = environment_.rank, size = environment_.size;
  std::chrono::milliseconds connect_timeout = options.connect_timeout;
  GlooEndpoint endpoint = choose_endpoint(environment_);
  store_ = open_store(environment_, connect_timeout);
  wait_for_all_ranks(*store_, environment_, connect_timeout);
  guard("connecting all ranks with each other", [&] {
    auto keys = c10::make_intrusive<c10d::PrefixStore>("gloo", store_);
    gloo_ = make_gloo_backend(keys, rank, size, endpoint, connect_timeout);
    if (options.device == "cuda") {
      choose_cuda_device(environment_.local_rank);
      auto cuda_keys = c10::make_intrusive<c10d::PrefixStore>("nccl", store_);
      nccl_ = make_nccl_backend(cuda_keys, rank, size, options.timeout);
    }
  });
  join_machine(options, endpoint);
  // Until here rank 0's store is read by others; a rank 0 that ends early must not take it away.
  start("first barrier", [&] { return gloo_->barrier({}); })();
  gloo_->setTimeout(options.timeout);
  if (leaders_) leaders_->setTimeout(options.timeout);
}

void Connections::join_machine(const WorldOptions& options, const GlooEndpoint& endpoint) {
  const int rank = environment_.rank;
  std::string key = options.machine.empty() ? machine_key() : options.machine;
  if (!options.shared_memory || key.empty()) key = fmt::format("rank {} alone", rank);
  auto gather = [this](const std::string& mine) { return all_gather_strings(mine); };
  Machines machines = group_by_machine(gather(key), rank);
  if (!machines.shared()) return;
  OpenedGroup opened = open_local_group(machines, rank, gather);
  if (!opened.failure.empty()) {
    if (rank == 0)
      log_info("all ranks talk over the network, without shared memory: {}", opened.failure);
    return;
  }
  if (!machines.one() && machines.neighbours().front() == rank) {
    guard("connecting the first ranks of all machines", [&] {
      auto keys = c10::make_intrusive<c10d::PrefixStore>("leaders", store_);
      auto count = static_cast<int>(machines.ranks.size());
      leaders_ = make_gloo_backend(keys, machines.mine, count, endpoint, options.connect_timeout);
    });
  }
  local_ = std::move(opened.group);
  if (local_) local_->set_timeout(options.timeout);
  machines_ = std::move(machines);
  queue_ = std::make_unique<OperationQueue>();
  log_debug("{} shares memory with {} others", who_, machines_.neighbours().size() - 1);
}

Connections::~Connections() {
  bool clean = !failed_ && std::uncaught_exceptions() <= exceptions_at_start_ && gloo_;
  if (clean) clean = say_farewell();
  if (!clean) give_up();
  queue_.reset();
  if (!clean) leave_unfinished();
  local_.reset();
  leaders_.reset();
  nccl_.reset();
  gloo_.reset();
  store_.reset();  // last: NCCL may still read it
}

// Waits for the others to be done; false when one of them is not.
bool Connections::say_farewell() {
  if (queue_ && !queue_->drain(kFarewell)) return false;
  c10d::BarrierOptions options;
  options.timeout = kFarewell;
  try {
    start("last barrier", [&] { return gloo_->barrier(options); })();
  } catch (const std::exception& exception) {
    // Nothing is lost: this rank was done. Another one was not, and reports for itself.
    log_debug("{} left first: {}", who_, exception.what());
    return false;
  }
  return !failed_;
}

// Ends what waits on the queue's thread.
void Connections::give_up() {
  if (nccl_) nccl_->abort();
  if (local_) local_->give_up();
  {
    std::scoped_lock lock(interruption_->mutex);
    interruption_->given_up = true;
  }
  interruption_->changed.notify_all();
}

// A group that is destroyed waits for what is under way, for as long as a peer keeps it up, and
// Gloo cannot be interrupted. The process is about to end in failure: it is left to that.
void Connections::leave_unfinished() {
  std::scoped_lock lock(mutex_);
  std::erase_if(started_, [](const WorkPointer& w) { return w->isCompleted(); });
  if (started_.empty()) return;
  for (WorkPointer& work : started_) work.release();
  leaders_.release();
  gloo_.release();
  store_.release();
  started_.clear();
}

c10d::Backend& Connections::backend_for(const torch::Tensor& tensor) const {
  TORCH_CHECK(tensor.is_contiguous(), "collective operations need contiguous tensors");
  TORCH_CHECK(!tensor.is_cuda() || nccl_, "a World for the CPU got a CUDA tensor");
  return tensor.is_cuda() ? *nccl_ : *gloo_;
}

std::string Connections::count(const std::string& name) {
  std::scoped_lock lock(mutex_);
  last_ = {last_.sequence + 1, name};
  return fmt::format("{} (operation {} of this rank)", name, last_.sequence);
}

void Connections::remember(const WorkPointer& work) {
  std::scoped_lock lock(mutex_);
  std::erase_if(started_, [](const WorkPointer& w) { return w->isCompleted(); });
  started_.push_back(work);
}

Completion Connections::queue(const std::string& name, std::function<void()> operation) {
  std::string what = count(name);
  auto or_give_up = [this, operation = std::move(operation)] {
    try {
      operation();
    } catch (...) {  // the neighbours learn of it now, not when somebody calls the completion
      if (local_) local_->give_up();
      throw;
    }
  };
  std::shared_future<void> done = queue_->add(std::move(or_give_up));
  return [this, what, done] { guard(what, [&] { done.get(); }); };
}

void Connections::run(const std::string& name, const std::function<void()>& operation) {
  std::string what = count(name);
  if (queue_) queue_->drain();
  guard(what, operation);
}

void Connections::sum_by_machine(const torch::Tensor& tensor, const Summation& summation) {
  if (local_) local_->all_reduce(tensor.data_ptr(), tensor.numel(), summation);
  if (leaders_) sum_of_leaders(tensor, summation);
  if (local_) local_->broadcast({static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()}, 0);
}

// Gloo sums bf16 one number at a time: between two machines an exchange moves as many bytes as its
// ring does and leaves the sum to our kernel.
void Connections::sum_of_leaders(const torch::Tensor& tensor, const Summation& summation) {
  if (leaders_->getSize() != 2 || tensor.scalar_type() != torch::kBFloat16) {
    std::vector<torch::Tensor> tensors{tensor};
    wait_for(leaders_->allreduce(tensors));
    return;
  }
  torch::Tensor mine = tensor.view({-1});
  torch::Tensor both = torch::empty({2 * mine.numel()}, mine.options());
  wait_for(leaders_->_allgather_base(both, mine));
  const auto* first = static_cast<const std::byte*>(both.data_ptr());
  const void* inputs[] = {first, first + mine.nbytes()};
  summation.sum(inputs, 2, mine.data_ptr(), mine.numel());
}

// As work->wait(), but ends when this World is given up.
void Connections::wait_for(const WorkPointer& work) {
  remember(work);
  auto done = std::make_shared<bool>(false);
  auto state = interruption_;
  work->getFuture()->addCallback([state, done](c10::ivalue::Future&) {
    {
      std::scoped_lock lock(state->mutex);
      *done = true;
    }
    state->changed.notify_all();
  });
  {
    std::unique_lock lock(state->mutex);
    state->changed.wait(lock, [&] { return *done || state->given_up; });
    if (!*done) throw std::runtime_error("this rank gave up");
  }
  work->wait();
}

torch::Tensor Connections::all_gather(const std::string& name, torch::Tensor mine) {
  const int64_t size = environment_.size;
  torch::Tensor all = torch::empty({size, mine.numel()}, mine.options());
  if (LocalGroup* group = shared(); group != nullptr) {
    const auto bytes = static_cast<int64_t>(mine.nbytes());
    std::vector<int64_t> cuts;
    for (int64_t r = 0; r <= size; ++r) cuts.push_back(r * bytes);
    all[environment_.rank].copy_(mine);
    auto* flat = static_cast<std::byte*>(all.data_ptr());
    run(name, [&] { group->all_gather_slices(flat, cuts); });
  } else {
    torch::Tensor flat = all.view({-1});
    start(name, [&] { return backend_for(mine)._allgather_base(flat, mine); })();
  }
  return all;
}

std::vector<std::string> Connections::all_gather_strings(const std::string& mine) {
  auto length = static_cast<int64_t>(mine.size());
  torch::Tensor lengths =
      all_gather("all_gather_strings, lengths", torch::full({1}, length, torch::kInt64));
  // Equal sizes, as Gloo wants them: every rank sends as much as the longest.
  torch::Tensor padded = torch::zeros({lengths.max().item<int64_t>()}, torch::kUInt8);
  if (padded.numel() == 0) return std::vector<std::string>(environment_.size);
  std::memcpy(padded.data_ptr(), mine.data(), mine.size());
  torch::Tensor all = all_gather("all_gather_strings", padded);
  std::vector<std::string> out;
  for (int r = 0; r < environment_.size; ++r) {
    out.emplace_back(reinterpret_cast<const char*>(all[r].data_ptr<uint8_t>()),
                     static_cast<std::size_t>(lengths[r].item<int64_t>()));
  }
  return out;
}

Operation Connections::last_operation() const {
  std::scoped_lock lock(mutex_);
  return last_;
}

}  // namespace lockstep
