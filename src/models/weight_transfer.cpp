#include "models/weight_transfer.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace lockstep {

using torch::Tensor;

OwnTensor own_tensor(const Parameters& parameters, const std::string& name) {
  if (const Parameter* p = parameters.find(name)) return {p->value.detach(), p->shape};
  const Buffer* b = parameters.find_buffer(name);
  TORCH_CHECK(b != nullptr, "no weight ", name);
  return {b->value, b->shape};
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

namespace {

at::ScalarType scalar_type(const fs::path& file, const TensorEntry& entry) {
  switch (entry.dtype) {
    case DType::kF32:
      return at::kFloat;
    case DType::kF16:
      return at::kHalf;
    case DType::kBF16:
      return at::kBFloat16;
    case DType::kF64:
      return at::kDouble;
    default:
      throw DataError("{}: tensor {}: expected F32, F16, BF16 or F64, found {}", file.string(),
                      entry.name, dtype_name(entry.dtype));
  }
}

}  // namespace

Tensor as_fp32(const fs::path& file, const TensorEntry& entry) {
  Tensor out = torch::empty(entry.shape, scalar_type(file, entry));
  std::copy(entry.data.begin(), entry.data.end(), static_cast<std::byte*>(out.data_ptr()));
  return out.to(at::kFloat);
}

void refuse_weights(const fs::path& file, const std::string& difference) {
  DataError error("{}: the weights of another network: {}", file.string(), difference);
  error.set_advice("the config.json that belongs to these weights");
  throw error;
}

void note_unused_tensors(const std::vector<std::string>& names, std::vector<std::string>& notes) {
  if (names.empty()) return;
  const bool one = names.size() == 1;
  notes.push_back(fmt::format("{} tensor{} of no use here: {}{}", names.size(), one ? "" : "s",
                              names.front(), one ? "" : ", ..."));
}

void WeightWriter::add(const std::string& name, const Tensor& value,
                       const std::vector<int64_t>& shape) {
  if (!low_ || shape.size() < 2) return add_exact(name, value, shape);
  keep(name, value.cpu().contiguous().view(shape).to(at::kBFloat16), DType::kBF16);
}

void WeightWriter::add_exact(const std::string& name, const Tensor& value,
                             const std::vector<int64_t>& shape) {
  keep(name, value.cpu().contiguous().view(shape), DType::kF32);
}

void WeightWriter::add_count(const std::string& name) {
  keep(name, torch::zeros({}, torch::kInt64), DType::kI64);
}

void WeightWriter::write(const fs::path& path) const {
  write_tensor_file(path, entries_, {{"format", "pt"}, {"lockstep", LOCKSTEP_VERSION}});
}

void WeightWriter::keep(const std::string& name, const Tensor& value, DType dtype) {
  tensors_.push_back(value);
  const auto* data = static_cast<const std::byte*>(value.const_data_ptr());
  entries_.push_back({name, dtype, value.sizes().vec(), {data, value.nbytes()}});
  bytes_ += static_cast<int64_t>(value.nbytes());
}

void make_model_folder(const fs::path& folder) {
  for (const char* name : {"model.safetensors", "config.json"}) {
    if (!fs::exists(folder / name)) continue;
    ConfigError error("{}: already holds a model ({})", folder.string(), name);
    error.set_advice(fmt::format("--out {}-2, or remove it", folder.string()));
    throw error;
  }
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw MachineError("{}: cannot be created: {}", folder.string(), failed.message());
}

}  // namespace lockstep
