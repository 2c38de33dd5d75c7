#include "nn/parameters.h"

#include <cmath>

#include "base/text.h"
#include "nn/device_memory.h"

namespace lockstep {

ParameterRef Parameters::add(std::string name, std::vector<int64_t> shape,
                             Initializer initializer) {
  return append(std::move(name), std::move(shape), std::move(initializer));
}

ParameterRef Parameters::add_table(std::string name, std::vector<int64_t> shape,
                                   Initializer initializer) {
  TORCH_CHECK(shape.size() == 2, "table ", name, " must have rows");
  std::shared_ptr<Parameter> table =
      append(std::move(name), std::move(shape), std::move(initializer));
  table->is_table = true;
  return table;
}

std::shared_ptr<Parameter> Parameters::append(std::string name, std::vector<int64_t> shape,
                                              Initializer initializer) {
  TORCH_CHECK(!values_.defined(), "parameter ", name, " added after allocate()");
  TORCH_CHECK(find(name) == nullptr && find_buffer(name) == nullptr, "two parameters named ", name);
  auto parameter = std::make_shared<Parameter>();
  parameter->name = std::move(name);
  parameter->numel = c10::multiply_integers(shape);
  parameter->shape = std::move(shape);
  parameter->offset = total_;
  total_ +=
      (parameter->numel + kParameterAlignment - 1) / kParameterAlignment * kParameterAlignment;
  owned_.push_back(parameter);
  list_.push_back(parameter);
  initializers_.push_back(std::move(initializer));
  return parameter;
}

BufferRef Parameters::add_buffer(std::string name, std::vector<int64_t> shape, float initial) {
  TORCH_CHECK(!values_.defined(), "buffer ", name, " added after allocate()");
  TORCH_CHECK(find(name) == nullptr && find_buffer(name) == nullptr, "two buffers named ", name);
  auto buffer = std::make_shared<Buffer>();
  buffer->name = std::move(name);
  buffer->numel = c10::multiply_integers(shape);
  buffer->shape = std::move(shape);
  buffer->offset = buffer_total_;
  buffer->initial = initial;
  buffer_total_ +=
      (buffer->numel + kParameterAlignment - 1) / kParameterAlignment * kParameterAlignment;
  owned_buffers_.push_back(buffer);
  buffer_list_.push_back(buffer);
  return buffer;
}

void Parameters::allocate(torch::Device device, at::ScalarType compute, uint64_t seed) {
  const bool low = compute != at::kFloat;
  TORCH_CHECK(!values_.defined(), "allocate() called twice");
  torch::NoGradGuard no_grad;
  auto fp32 = torch::TensorOptions().dtype(torch::kFloat32);
  torch::Tensor initial = torch::zeros({total_}, fp32);
  at::Generator generator = at::detail::createCPUGenerator(seed);
  for (std::size_t i = 0; i < owned_.size(); ++i) {
    const Parameter& p = *owned_[i];
    torch::Tensor view = initial.narrow(0, p.offset, p.numel).view(p.shape);
    initializers_[i](view, generator);
  }
  try {
    values_ = initial.to(device);
    gradients_ = torch::zeros_like(values_);
    if (low) low_ = values_.to(compute);
  } catch (const std::exception& error) {
    if (!is_lack_of_memory(error)) throw;
    throw lack_of_memory(error, device,
                         fmt::format("{} weights and their gradients", with_commas(count())),
                         total_ * (low ? 10 : 8));
  }
  for (const std::shared_ptr<Parameter>& p : owned_) {
    auto slice = [&](const torch::Tensor& flat) {
      return flat.narrow(0, p->offset, p->numel).view(p->shape).variable_data();
    };
    p->value = slice(values_).set_requires_grad(true);
    p->value.mutable_grad() = slice(gradients_);
    if (low) p->low = slice(low_);
  }
  initializers_.clear();
  buffers_ = torch::zeros({buffer_total_}, values_.options());
  for (const std::shared_ptr<Buffer>& b : owned_buffers_) {
    b->value = buffers_.narrow(0, b->offset, b->numel).view(b->shape);
    b->value.fill_(b->initial);
  }
}

void Parameters::refresh_low() {
  torch::NoGradGuard no_grad;
  if (low_.defined()) low_.copy_(values_);
}

const Parameter* Parameters::find(const std::string& name) const {
  for (const std::shared_ptr<Parameter>& p : owned_) {
    if (p->name == name) return p.get();
  }
  return nullptr;
}

const Buffer* Parameters::find_buffer(const std::string& name) const {
  for (const std::shared_ptr<Buffer>& b : owned_buffers_) {
    if (b->name == name) return b.get();
  }
  return nullptr;
}

int64_t Parameters::count() const {
  int64_t count = 0;
  for (const std::shared_ptr<Parameter>& p : owned_) count += p->numel;
  return count;
}

Parameters::Initializer zeros() {
  return [](torch::Tensor&, at::Generator&) {};  // the arrays start as zeros
}

Parameters::Initializer ones() {
  return [](torch::Tensor& t, at::Generator&) { t.fill_(1); };
}

Parameters::Initializer normal(double standard_deviation) {
  return [=](torch::Tensor& t, at::Generator& g) { t.normal_(0, standard_deviation, g); };
}

Parameters::Initializer uniform(double bound) {
  return [bound](torch::Tensor& t, at::Generator& g) { t.uniform_(-bound, bound, g); };
}

Parameters::Initializer he_normal() {
  return [](torch::Tensor& t, at::Generator& g) {
    const double fan_out = static_cast<double>(t.size(0) * t.size(2) * t.size(3));
    t.normal_(0, std::sqrt(2.0 / fan_out), g);
  };
}

Parameters::Initializer xavier_uniform(int64_t parts) {
  return [=](torch::Tensor& t, at::Generator& g) {
    double fan_out = static_cast<double>(t.size(0)) / static_cast<double>(parts);
    double bound = std::sqrt(6.0 / (fan_out + static_cast<double>(t.size(1))));
    t.uniform_(-bound, bound, g);
  };
}

}  // namespace lockstep
