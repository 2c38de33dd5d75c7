#include "train/checkpoint/bad_batches.h"

#include "base/error.h"
#include "base/log.h"
#include "train/checkpoint/checkpoint_tensors.h"

namespace lockstep {

void keep_batch(const fs::path& folder, int64_t step, int rank,
                std::span<const std::unique_ptr<Batch>> micro_batches) {
  std::vector<std::pair<std::string, torch::Tensor>> tensors;
  for (std::size_t i = 0; i < micro_batches.size(); ++i) {
    for (auto& [name, tensor] : micro_batches[i]->named_tensors()) {
      if (tensor.defined()) tensors.emplace_back(fmt::format("{}.{}", i, name), tensor);
    }
  }
  if (tensors.empty()) return;
  const fs::path file = folder / fmt::format("step_{}.rank_{}.safetensors", step, rank);
  try {
    std::error_code failed;
    fs::create_directories(folder, failed);
    write_named_tensors(file, tensors);
  } catch (const Error& error) {
    log_warning("the batch of step {} is not kept: {}", step, error.what());
  }
}

}  // namespace lockstep
