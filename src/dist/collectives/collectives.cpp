#include "dist/collectives/collectives.h"

#include <c10/util/Logging.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "dist/collectives/cuda.h"
#include "dist/collectives/gloo_backend.h"
#include "dist/collectives/store.h"
#include "dist/rank/machine_key.h"
#include "dist/rank/network.h"

namespace lockstep {
namespace {

// How long a finished rank waits for the others to finish before it closes its connections.
constexpr std::chrono::seconds kFarewell{10};

// Stops c10d from printing each failure with C++ frames before it throws; a person needs only what
// it throws.
void quieten_c10d() {
  constexpr int kFatalOnly = 3;
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = kFatalOnly;
}

// Where this rank listens for the others.
GlooEndpoint choose_endpoint(const LaunchEnvironment& environment) {
  GlooEndpoint out;
  if (!environment.address.empty()) {  // the launcher found it for all hosts
    log_debug("rank {} talks over {}", environment.rank, environment.address);
    out.address = environment.address;
    return out;
  }
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

const char* name_of(at::ScalarType type) {
  switch (type) {
    case torch::kFloat32:
      return "fp32";
    case torch::kFloat64:
      return "fp64";
    case torch::kFloat16:
      return "fp16";
    case torch::kBFloat16:
      return "bf16";
    case torch::kInt64:
      return "int64";
    case torch::kUInt8:
      return "byte";
    default:
      return c10::toString(type);
  }
}

}  // namespace

OperationLabel::OperationLabel(std::string label, const torch::Tensor& tensor)
    : name(std::move(label)),
      numel(tensor.numel()),
      type(name_of(tensor.scalar_type())),
      bytes(static_cast<int64_t>(tensor.nbytes())),
      interruptible(tensor.is_cpu()),
      on_gpu(!tensor.is_cpu()) {}

double seconds_of_gpu(const c10d::Work& work) {
  try {
    return work.getDuration() / 1000.0;  // from milliseconds
  } catch (const c10::Error&) {
    return 0;
  }
}

std::string Collectives::Issued::text() const {
  return sequence == 0 ? name : fmt::format("{} (operation {} of this rank)", name, sequence);
}

Collectives::Collectives(const LaunchEnvironment& environment, Heartbeat& heartbeat)
    : environment_(environment),
      heartbeat_(heartbeat),
      who_(fmt::format("rank {} of {}", environment.rank, environment.size)) {}

void Collectives::connect(const WorldOptions& options) {
  quieten_c10d();
  const int rank = environment_.rank, size = environment_.size;
  std::chrono::milliseconds connect_timeout = options.connect_timeout;
  GlooEndpoint endpoint = choose_endpoint(environment_);
  store_ = open_store(environment_, connect_timeout);
  wait_for_all_ranks(*store_, environment_, connect_timeout);
  open_heartbeat(connect_timeout);
  guard(Issued{"connecting all ranks with each other"}, [&] {
    auto keys = c10::make_intrusive<c10d::PrefixStore>("gloo", store_);
    gloo_ = make_gloo_backend(keys, rank, size, endpoint, connect_timeout);
    if (options.device == "cuda") {
      const CudaFunctions& cuda = *cuda_functions();  // World checked that the module is there
      cuda.choose_device(environment_.local_rank % usable_gpus());
      if (options.through_host) return;
      auto cuda_keys = c10::make_intrusive<c10d::PrefixStore>("nccl", store_);
      nccl_ = cuda.make_nccl_backend(cuda_keys, rank, size, options.timeout);
    }
  });
  join_machine(options);
  connect_machines(options, endpoint.interfaces.empty()
                                ? endpoint.address
                                : address_of_interface(endpoint.interfaces.front()).address);
  heartbeat_.on_verdict([this] { give_up(); });
  // Up to here the others read rank 0's store: a rank 0 that ends early must not take it away.
  start("first barrier", [&] { return gloo_->barrier({}); })();
  gloo_->setTimeout(options.timeout);
  if (mesh_) mesh_->set_timeout(options.timeout);
}

void Collectives::open_heartbeat(std::chrono::milliseconds timeout) {
  const char* key = "heartbeat";
  LocalAddress local = local_address_towards(environment_.master_address);
  try {
    if (environment_.rank == 0) {
      std::string meeting = heartbeat_.open(local.address, environment_.shared_secret());
      store_->set(key, std::vector<uint8_t>(meeting.begin(), meeting.end()));
    } else {
      store_->wait({key}, timeout);
      std::vector<uint8_t> meeting = store_->get(key);
      heartbeat_.join({meeting.begin(), meeting.end()}, environment_.shared_secret());
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception& exception) {  // the store went away with rank 0
    throw peer_error(who_, "looking for rank 0's heartbeat", exception);
  }
  heartbeat_.start(local.interface, environment_.local_rank == 0);
}

void Collectives::join_machine(const WorldOptions& options) {
  const int rank = environment_.rank;
  std::string key = options.machine.empty() ? machine_key() : options.machine;
  if (!options.shared_memory || key.empty()) key = fmt::format("rank {} alone", rank);
  // Over the store: a ring of all ranks would pass a number of messages that grows with their
  // square.
  auto gather = [&](const std::string& mine) {
    return gather_through_store(mine, options.connect_timeout);
  };
  Machines machines = group_by_machine(gather(key), rank);
  if (!machines.shared()) return;
  OpenedGroup opened = open_local_group(machines, rank, gather);
  if (!opened.failure.empty()) {
    if (rank == 0)
      log_info("all ranks talk over the network, without shared memory: {}", opened.failure);
    return;
  }
  local_ = std::move(opened.group);
  if (local_) local_->set_timeout(options.timeout);
  if (local_) local_->count_in(account().moved());
  machines_ = std::move(machines);
  if (local_) queue_ = std::make_unique<OperationQueue>();
  log_debug("{} shares memory with {} others", who_, machines_.neighbours().size() - 1);
}

void Collectives::connect_machines(const WorldOptions& options, const std::string& address) {
  if (shared() != nullptr) return;
  MeshMembers members{
      .address = address, .secret = environment_.shared_secret(), .streams = options.streams};
  for (int rank = 0; rank < environment_.size; ++rank) {
    if (machines_.ranks.empty()) members.ranks.push_back(rank);
  }
  for (const std::vector<int>& machine : machines_.ranks) members.ranks.push_back(machine.front());
  auto me = std::find(members.ranks.begin(), members.ranks.end(), environment_.rank);
  if (me == members.ranks.end()) return;
  members.me = static_cast<int>(me - members.ranks.begin());
  guard(Issued{"connecting the first ranks of all machines"}, [&] {
    mesh_ =
        std::make_unique<Mesh>(members, connect_mesh(*store_, members, options.connect_timeout));
  });
  mesh_->count_in(account().moved());
}

Collectives::~Collectives() {
  bool clean = !failed_ && std::uncaught_exceptions() <= exceptions_at_start_ && gloo_;
  if (clean) clean = say_farewell();
  if (!clean) give_up();
  heartbeat_.leave(clean);
  heartbeat_.on_verdict(nullptr);
  queue_.reset();
  if (!clean) leave_unfinished();
  local_.reset();
  mesh_.reset();
  nccl_.reset();
  gloo_.reset();
  store_.reset();  // last: NCCL may still read it
}

bool Collectives::say_farewell() {
  if (queue_ && !queue_->drain(kFarewell)) return false;
  c10d::BarrierOptions options;
  options.timeout = kFarewell;
  try {
    count_operation("last barrier");
    WorkPointer work = gloo_->barrier(options);
    remember(work);
    wait_for(work);
  } catch (const std::exception& exception) {
    // Nothing is lost: this rank had finished. The other one had not, and reports that itself.
    log_debug("{} left first: {}", who_, exception.what());
    return false;
  }
  return !failed_;
}

// Returns the error that says who is at fault, as the heartbeat finds; else what the transport
// says. The neighbours on this machine learn of it at once.
MachineError Collectives::failure(const std::string& what, const std::exception& exception) {
  failed_ = true;
  if (local_) local_->give_up();
  if (mesh_) mesh_->give_up();
  const bool is_aftermath = std::string_view(exception.what()).find("aborted") != std::string::npos;
  const std::string found = is_aftermath ? found_by_nccl() : "";
  if (!found.empty()) return failure_by(what, std::runtime_error(found));
  return failure_by(what, exception);
}

MachineError Collectives::failure_by(const std::string& what, const std::exception& exception) {
  std::optional<RankVerdict> verdict = heartbeat_.ask(plain_text_of(exception));
  return verdict ? verdict_error(*verdict, who_, what) : peer_error(who_, what, exception);
}

// Ends all waiting operations, on whichever thread they wait.
void Collectives::give_up() {
  if (nccl_) nccl_->abort();
  if (local_) local_->give_up();
  if (mesh_) mesh_->give_up();
  {
    std::scoped_lock lock(interruption_->mutex);
    interruption_->given_up = true;
  }
  interruption_->changed.notify_all();
}

namespace {

// What a GPU that failed was doing is not complete: asking it throws.
bool is_complete(c10d::Work& work) {
  try {
    return work.isCompleted();
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

// Destroying a process group waits for its running operations for as long as a peer delays
// them, and Gloo cannot be interrupted; NCCL's waits for its watchdog, which sleeps for a minute
// after an error. As the process is about to end in failure, the groups are leaked instead.
void Collectives::leave_unfinished() {
  std::scoped_lock lock(mutex_);
  if (nccl_) {
    nccl_.release();
    store_.release();
  }
  std::erase_if(started_, [](const WorkPointer& w) { return is_complete(*w); });
  if (started_.empty()) return;
  for (WorkPointer& work : started_) work.release();
  gloo_.release();
  store_.release();
  started_.clear();
}

c10d::Backend& Collectives::backend_for(const torch::Tensor& tensor) const {
  TORCH_CHECK(tensor.is_contiguous(), "collective operations need contiguous tensors");
  TORCH_CHECK(tensor.is_cpu() || nccl_, "a World for the CPU got a tensor of a GPU");
  return tensor.is_cpu() ? *gloo_ : *nccl_;
}

Collectives::Issued Collectives::count_operation(const OperationLabel& label) {
  if (std::optional<RankVerdict> verdict = heartbeat_.verdict()) {
    failed_ = true;
    throw verdict_error(*verdict, who_, label.name);
  }
  if (label.of_some) return {label.name};
  return {label.name, heartbeat_.progress().start_operation(label.name, label.numel, label.type)};
}

void Collectives::remember(const WorkPointer& work) {
  std::scoped_lock lock(mutex_);
  std::erase_if(started_, [](const WorkPointer& w) { return w->isCompleted(); });
  started_.push_back(work);
}

// Makes the neighbours learn of a failure now, not when somebody calls the completion.
std::function<void()> Collectives::or_give_up(std::function<void()> operation) {
  return [this, operation = std::move(operation)] {
    try {
      operation();
    } catch (...) {
      if (local_) local_->give_up();
      if (mesh_) mesh_->give_up();
      throw;
    }
  };
}

Completion Collectives::queue(const OperationLabel& label, std::function<void()> operation) {
  Issued issued = count_operation(label);
  std::shared_future<void> done = queue_->add(
      or_give_up([this, label, operation = std::move(operation)] { timed(label, operation); }));
  return [this, issued, done] { guard(issued, [&] { done.get(); }); };
}

void Collectives::run(const OperationLabel& label, const std::function<void()>& operation) {
  Issued issued = count_operation(label);
  if (queue_) queue_->drain();
  guard(issued, [&] { timed(label, operation); });
}

Completion Collectives::start_sum(const OperationLabel& label, void* data, int64_t count,
                                  const Summation& summation) {
  const Issued issued = count_operation(label);
  const std::span<std::byte> bytes{static_cast<std::byte*>(data),
                                   static_cast<std::size_t>(count) * summation.element_bytes};
  // The sum between the machines, which ends on the mesh's thread.
  auto start_between = [this, label, bytes, summation] {
    const auto begin = StepAccount::Clock::now();
    return mesh_->start_sum(bytes, summation, [this, label, begin] {
      account().exchange(label.name, begin, StepAccount::Clock::now(), label.bytes);
    });
  };
  if (!local_) {
    std::shared_future<void> done;
    guard(issued, [&] { done = start_between(); });
    return [this, issued, done] { guard(issued, [&] { done.get(); }); };
  }
  // The steps through shared memory run on the queue's thread, in the order of the starts and
  // completions, which is the same on every rank of the machine.
  auto between = std::make_shared<std::shared_future<void>>();
  std::shared_future<void> begun = queue_->add(or_give_up([=, this] {
    timed(label, [&] { local_->all_reduce(data, count, summation); });
    if (mesh_) *between = start_between();
  }));
  return [=, this] {
    std::shared_future<void> done = queue_->add(or_give_up([=, this] {
      if (mesh_) between->get();
      timed(label, [&] { local_->broadcast(bytes, 0); });
    }));
    guard(issued, [&] {
      begun.get();  // rethrows the first failure first
      done.get();
    });
  };
}

// Waits like work->wait(), but throws when this World gives up.
void Collectives::wait_for(const WorkPointer& work) {
  if (work->isCompleted()) return void(work->wait());
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

Operation Collectives::last_operation() const {
  OperationRecord last = heartbeat_.progress().last_operation();
  return {last.sequence, last.name};
}

}  // namespace lockstep
