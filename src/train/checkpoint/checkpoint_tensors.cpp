#include "train/checkpoint/checkpoint_tensors.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace lockstep {

namespace {

const TensorMetadata kMetadata = {{"format", "pt"}, {"lockstep", LOCKSTEP_VERSION}};

DType dtype_of(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return DType::kF64;
    case at::kLong:
      return DType::kI64;
    case at::kFloat:
      return DType::kF32;
    case at::kInt:
      return DType::kI32;
    case at::kHalf:
      return DType::kF16;
    case at::kBFloat16:
      return DType::kBF16;
    case at::kShort:
      return DType::kI16;
    case at::kChar:
      return DType::kI8;
    case at::kByte:
      return DType::kU8;
    case at::kBool:
      return DType::kBool;
    default:
      throw DataError("tensors of type {} cannot be saved", c10::toString(type));
  }
}

// Adds one entry for every parameter: its slice of a flat fp32 array on the CPU, without copying.
void add_entries(const Parameters& parameters, const torch::Tensor& flat, const std::string& prefix,
                 std::vector<TensorEntry>& out) {
  auto base = static_cast<const std::byte*>(flat.const_data_ptr());
  for (const ParameterRef& p : parameters.list()) {
    std::span<const std::byte> data(base + p->offset * 4, static_cast<std::size_t>(p->numel) * 4);
    out.push_back({prefix + p->name, DType::kF32, p->shape, data});
  }
}

// Adds one entry for every buffer, likewise.
void add_buffers(const Parameters& parameters, const torch::Tensor& flat,
                 std::vector<TensorEntry>& out) {
  auto base = static_cast<const std::byte*>(flat.const_data_ptr());
  for (const BufferRef& b : parameters.buffer_list()) {
    std::span<const std::byte> data(base + b->offset * 4, static_cast<std::size_t>(b->numel) * 4);
    out.push_back({b->name, DType::kF32, b->shape, data});
  }
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// Reads the slice of one tensor; T is Parameter or Buffer.
template <typename T>
void read_entry(const TensorFile& file, const T& wanted, const std::string& name, std::byte* base) {
  const TensorEntry& entry = file.get(name);
  if (entry.dtype != DType::kF32 || entry.shape != wanted.shape) {
    throw DataError("{}: tensor {}: expected F32 {}, found {} {}; another architecture?",
                    file.path().string(), entry.name, shape_text(wanted.shape),
                    dtype_name(entry.dtype), shape_text(entry.shape));
  }
  std::copy(entry.data.begin(), entry.data.end(), base + wanted.offset * 4);
}

void read_entries(const TensorFile& file, const Parameters& parameters, const std::string& prefix,
                  torch::Tensor& flat) {
  torch::Tensor host = torch::zeros_like(flat, flat.options().device(torch::kCPU));
  auto base = static_cast<std::byte*>(host.mutable_data_ptr());
  for (const ParameterRef& p : parameters.list()) read_entry(file, *p, prefix + p->name, base);
  flat.copy_(host);
}

// Adds one number for every parameter.
void add_layer_entries(const Parameters& parameters, const torch::Tensor& numbers,
                       const std::string& prefix, std::vector<TensorEntry>& out) {
  auto base = static_cast<const std::byte*>(numbers.const_data_ptr());
  for (std::size_t i = 0; i < parameters.list().size(); ++i) {
    out.push_back({prefix + parameters.list()[i]->name, DType::kF32, {}, {base + 4 * i, 4}});
  }
}

void read_layer_entries(const TensorFile& file, const Parameters& parameters,
                        const std::string& prefix, torch::Tensor& numbers) {
  auto base = static_cast<std::byte*>(numbers.mutable_data_ptr());
  for (std::size_t i = 0; i < parameters.list().size(); ++i) {
    const TensorEntry& entry = file.get(prefix + parameters.list()[i]->name);
    if (entry.dtype != DType::kF32 || entry.data.size() != 4) {
      throw DataError("{}: tensor {}: expected one F32, found {} {}; another optimizer?",
                      file.path().string(), entry.name, dtype_name(entry.dtype),
                      shape_text(entry.shape));
    }
    std::copy(entry.data.begin(), entry.data.end(), base + 4 * i);
  }
}

// Copies the tensors of `source` whose names and shapes match; T is Parameter or Buffer.
template <typename T>
void match(const TensorFile& source, const std::vector<std::shared_ptr<const T>>& wanted,
           const torch::Tensor& flat, MatchedWeights& out) {
  torch::Tensor host = flat.to(torch::kCPU, /*non_blocking=*/false, /*copy=*/true);
  auto base = static_cast<std::byte*>(host.mutable_data_ptr());
  for (const std::shared_ptr<const T>& p : wanted) {
    const TensorEntry* entry = source.find(p->name);
    if (entry == nullptr) {
      out.absent.push_back(p->name);
    } else if (entry->dtype != DType::kF32 || entry->shape != p->shape) {
      out.other_shape.push_back(fmt::format("{} {}, there {} {}", p->name, shape_text(p->shape),
                                            dtype_name(entry->dtype), shape_text(entry->shape)));
    } else {
      std::copy(entry->data.begin(), entry->data.end(), base + p->offset * 4);
      out.copied.push_back(p->name);
    }
  }
  torch::Tensor(flat).copy_(host);
}

}  // namespace

WrittenFile write_arrays(const fs::path& path, const Parameters& parameters,
                         const std::vector<StateArray>& arrays) {
  std::vector<TensorEntry> entries;
  std::vector<torch::Tensor> host;  // keeps copies from a GPU alive
  for (const auto& [prefix, data, per_layer] : arrays) {
    host.push_back(data.to(torch::kCPU));
    (per_layer ? add_layer_entries : add_entries)(parameters, host.back(), prefix, entries);
  }
  return write_tensor_file(path, entries, kMetadata);
}

WrittenFile write_network(const fs::path& path, const Parameters& parameters,
                          const torch::Tensor& weights, const torch::Tensor& buffers) {
  const torch::Tensor host = weights.to(torch::kCPU), host_buffers = buffers.to(torch::kCPU);
  std::vector<TensorEntry> entries;
  add_entries(parameters, host, "", entries);
  add_buffers(parameters, host_buffers, entries);
  return write_tensor_file(path, entries, kMetadata);
}

WrittenFile write_named_tensors(const fs::path& path,
                                const std::vector<std::pair<std::string, torch::Tensor>>& tensors) {
  std::vector<TensorEntry> entries;
  std::vector<torch::Tensor> held;  // whose memory the entries name
  for (const auto& [name, tensor] : tensors) {
    held.push_back(tensor.detach().to(torch::kCPU).contiguous());
    const torch::Tensor& t = held.back();
    entries.push_back({name,
                       dtype_of(t.scalar_type()),
                       t.sizes().vec(),
                       {static_cast<const std::byte*>(t.const_data_ptr()), t.nbytes()}});
  }
  return write_tensor_file(path, entries, kMetadata);
}

WrittenFile write_weights(const fs::path& path, const std::vector<TensorEntry>& weights) {
  return write_tensor_file(path, weights, kMetadata);
}

void read_array(const TensorFile& file, const Parameters& parameters, const StateArray& array) {
  torch::Tensor data = array.data;
  (array.per_layer ? read_layer_entries : read_entries)(file, parameters, array.name, data);
}

void check_count(const TensorFile& file, const Parameters& parameters, std::size_t buffers) {
  const std::size_t found = file.entries().size(), weights = parameters.list().size();
  if (found >= buffers && (found - buffers) % weights == 0) return;
  throw DataError("{}: {} tensors, expected {}; another architecture?", file.path().string(), found,
                  weights + buffers);
}

void read_network(const TensorFile& file, const Parameters& parameters, torch::Tensor& weights,
                  torch::Tensor& buffers) {
  read_entries(file, parameters, "", weights);
  torch::Tensor host = buffers.to(torch::kCPU, /*non_blocking=*/false, /*copy=*/true);
  auto base = static_cast<std::byte*>(host.mutable_data_ptr());
  for (const BufferRef& b : parameters.buffer_list()) read_entry(file, *b, b->name, base);
  buffers.copy_(host);
  check_count(file, parameters, parameters.buffer_list().size());
}

MatchedWeights load_matching_weights(const fs::path& file, Parameters& parameters) {
  torch::NoGradGuard no_grad;
  MatchedWeights out;
  TensorFile source(file);
  match(source, parameters.list(), parameters.values(), out);
  match(source, parameters.buffer_list(), parameters.buffers(), out);
  for (const std::string& name : source.names()) {
    const bool is_ours =
        parameters.find(name) != nullptr || parameters.find_buffer(name) != nullptr;
    if (!is_ours) out.unused.push_back(name);
  }
  parameters.refresh_low();
  return out;
}

}  // namespace lockstep
