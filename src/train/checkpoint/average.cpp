#include "train/checkpoint/average.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "formats/tensor_file.h"
#include "train/checkpoint/checkpoint.h"
#include "train/folder/run_folder.h"

namespace lockstep {

namespace {

std::vector<TensorFile> open_files(const AverageRequest& request) {
  std::vector<TensorFile> files;
  for (const fs::path& checkpoint : request.checkpoints) {
    std::string damage = checkpoint_damage(checkpoint);
    if (!damage.empty()) throw DataError("{}: {}", checkpoint.string(), damage);
    files.emplace_back(request.moving ? weights_for_use(checkpoint)
                                      : checkpoint / "weights.safetensors");
  }
  return files;
}

// Returns the bytes of the tensor of `file` that has the name of `first`; its shape must be the
// same.
std::span<const std::byte> like(const TensorEntry& first, const TensorFile& file) {
  const TensorEntry& entry = file.get(first.name);
  if (entry.dtype != DType::kF32 || entry.shape != first.shape) {
    throw DataError("{}: tensor {}: expected F32 [{}], found {} [{}]; another architecture?",
                    file.path().string(), first.name, fmt::join(first.shape, ", "),
                    dtype_name(entry.dtype), fmt::join(entry.shape, ", "));
  }
  return entry.data;
}

void check_same_tensors(const std::vector<TensorFile>& files) {
  for (const TensorFile& file : files) {
    for (const TensorEntry& entry : file.entries()) files.front().get(entry.name);
    for (const TensorEntry& entry : files.front().entries()) like(entry, file);
  }
}

// Returns the weighted mean of one tensor: fp32, summed in double.
std::vector<float> mean_of(const TensorEntry& first, const std::vector<TensorFile>& files,
                           const std::vector<double>& shares) {
  std::vector<double> sum(first.data.size() / sizeof(float));
  for (std::size_t f = 0; f < files.size(); ++f) {
    std::vector<float> values(sum.size());  // a copy: files may hold unaligned data
    std::memcpy(values.data(), like(first, files[f]).data(), first.data.size());
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += shares[f] * static_cast<double>(values[i]);
    }
  }
  return {sum.begin(), sum.end()};
}

// Copies what lies beside the checkpoints: configuration, versions, what the task needs.
void copy_run_files(const fs::path& run, const fs::path& out) {
  for (const fs::directory_entry& entry : fs::directory_iterator(run)) {
    std::string name = entry.path().filename().string();
    bool history =
        name == "metrics.jsonl" || (name.starts_with("config.") && name != "config.toml");
    if (entry.is_regular_file() && !history) write_file(out / name, read_file(entry.path()));
  }
}

std::vector<double> normalised(const AverageRequest& request) {
  std::vector<double> shares = request.shares;
  if (shares.empty()) shares.assign(request.checkpoints.size(), 1);
  double total = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= total;
  return shares;
}

}  // namespace

void write_average(const AverageRequest& request, const fs::path& out) {
  RunFolder folder(out);
  if (fs::exists(out) && !fs::is_empty(out)) {
    throw ConfigError("{}: is there already and not empty; nothing is overwritten", out.string());
  }
  fs::path run = fs::absolute(request.checkpoints.front()).parent_path().parent_path();
  RunFolder(run).require_run();
  std::vector<TensorFile> files = open_files(request);
  check_same_tensors(files);

  const std::vector<double> shares = normalised(request);
  std::vector<std::vector<float>> means;
  std::vector<TensorEntry> entries;
  for (const TensorEntry& first : files.front().entries()) {
    means.push_back(mean_of(first, files, shares));
    entries.push_back(first);
    entries.back().data = std::as_bytes(std::span<const float>(means.back()));
  }
  int64_t step = 0;
  nlohmann::ordered_json parts = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < files.size(); ++i) {
    step = std::max(step, checkpoint_step(request.checkpoints[i]));
    parts.push_back({{"weights", files[i].path().string()}, {"share", shares[i]}});
  }
  std::error_code failed;
  fs::create_directories(folder.checkpoints(), failed);
  if (failed) throw MachineError("{}: cannot be created: {}", out.string(), failed.message());
  save_weights(folder.checkpoints(), step, entries);
  copy_run_files(run, out);
  write_file(out / "average.json", parts.dump(1) + "\n");
}

}  // namespace lockstep
