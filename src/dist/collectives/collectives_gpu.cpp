// Implements what Collectives knows of operations on GPUs, which the host does not wait for.
#include <stdexcept>
#include <utility>

#include "dist/collectives/collectives.h"

namespace lockstep {

void Collectives::keep_for_check(const Issued& issued, const WorkPointer& work) {
  std::scoped_lock lock(mutex_);
  on_gpu_.emplace_back(issued, work);
}

void Collectives::check_gpu_operations() {
  std::vector<std::pair<Issued, WorkPointer>> ended;
  {
    std::scoped_lock lock(mutex_);
    ended.swap(on_gpu_);
  }
  for (const auto& operation : ended) {
    guard(operation.first, [&] {
      if (heartbeat_.verdict()) throw std::runtime_error("another rank has failed");
      const std::exception_ptr error = operation.second->exception();
      if (error) std::rethrow_exception(error);
      const std::string found = found_by_nccl();
      if (!found.empty()) throw std::runtime_error(found);
    });
  }
}

// What NCCL's watchdog found before it aborted all operations, which then say no more than that;
// their works do not show it. Empty: nothing.
std::string Collectives::found_by_nccl() const {
  if (!nccl_ || nccl_->getBackendName() != "nccl") return "";
  switch (nccl_->getError()) {
    case c10d::ErrorType::SUCCESS:
      return "";
    case c10d::ErrorType::TIMEOUT:
      return "an operation of NCCL did not end within comm.timeout_seconds";
    default:
      return "NCCL lost its connection to another rank";
  }
}

}  // namespace lockstep
