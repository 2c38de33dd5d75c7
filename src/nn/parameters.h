// Keeps the weights of a network in one flat array, their gradients in a second of the same layout
// and, in mixed precision, the weights rounded to 16 bits in a third. Slices of the flat arrays are
// at once the tensors that the operations see, the buckets that ranks exchange and what the
// optimizer updates: nothing is ever copied between them. Buffers, which are not trained, have a
// flat array of their own.
#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// One weight. Handles (ParameterRef) are given out before the arrays exist; the tensors are defined
// once Parameters::allocate has run.
struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
  int64_t offset = 0;  // of its first element in the flat arrays; a multiple of kParameterAlignment
  int64_t numel = 0;
  torch::Tensor value;    // fp32 [shape], a leaf that requires grad; value.grad() is a view too
  torch::Tensor low;      // bf16 or fp16 [shape], value rounded; undefined in fp32 training
  bool is_table = false;  // rows are looked up; one without a gradient was not used in a step

  // Returns the tensor that an operation computing in `dtype` reads.
  const torch::Tensor& as(at::ScalarType dtype) const { return dtype == at::kFloat ? value : low; }
};
using ParameterRef = std::shared_ptr<const Parameter>;

// State that a forward pass in training changes and that is saved but not trained: the running
// statistics of batch norms. `value` is defined once Parameters::allocate has run.
struct Buffer {
  std::string name;
  std::vector<int64_t> shape;
  int64_t offset = 0;  // of its first element in Parameters::buffers(), aligned as parameters are
  int64_t numel = 0;
  float initial = 0;
  torch::Tensor value;  // fp32 [shape], no gradient
};
using BufferRef = std::shared_ptr<const Buffer>;

inline constexpr int64_t kParameterAlignment = 16;  // elements: 64 bytes of fp32, a cache line

class Parameters {
 public:
  // Fills the fp32 [shape] tensor it is given, on the CPU, with numbers from the generator.
  using Initializer = std::function<void(torch::Tensor&, at::Generator&)>;

  // Adds a weight. The order of the calls is the order in the flat arrays. Names
  // are unique (TORCH_CHECK).
  ParameterRef add(std::string name, std::vector<int64_t> shape, Initializer initializer);
  // Adds a lookup table [entries, width], such as an embedding.
  ParameterRef add_table(std::string name, std::vector<int64_t> shape, Initializer initializer);

  // Adds a buffer whose elements start as `initial`. Names are unique, also among parameters.
  BufferRef add_buffer(std::string name, std::vector<int64_t> shape, float initial);

  // Allocates the arrays on `device`, initialises every weight from `seed` (equal on every rank)
  // and sets gradients to zero. If `compute` has 16 bits, also makes a copy of the weights in that
  // type. Call once, after the last add. Throws MachineError where the device has not the memory.
  void allocate(torch::Device device, at::ScalarType compute, uint64_t seed);

  // Flat arrays [total]; padding between parameters stays zero in all of them.
  const torch::Tensor& values() const { return values_; }
  const torch::Tensor& gradients() const { return gradients_; }
  const torch::Tensor& low() const { return low_; }  // undefined in fp32

  // Returns all buffers, fp32 [total] with zeros between them; 0 elements when there are none.
  const torch::Tensor& buffers() const { return buffers_; }
  const std::vector<BufferRef>& buffer_list() const { return buffer_list_; }
  const Buffer* find_buffer(const std::string& name) const;  // null when there is none

  void refresh_low();  // values -> low, after the values changed outside the optimizer

  const std::vector<ParameterRef>& list() const { return list_; }
  const Parameter* find(const std::string& name) const;  // null when there is none
  int64_t count() const;                                 // weights, padding not counted

 private:
  std::shared_ptr<Parameter> append(std::string name, std::vector<int64_t> shape,
                                    Initializer initializer);

  std::vector<std::shared_ptr<Parameter>> owned_;
  std::vector<ParameterRef> list_;
  std::vector<Initializer> initializers_;
  int64_t total_ = 0;
  torch::Tensor values_, gradients_, low_;
  std::vector<std::shared_ptr<Buffer>> owned_buffers_;
  std::vector<BufferRef> buffer_list_;
  int64_t buffer_total_ = 0;
  torch::Tensor buffers_;
};

Parameters::Initializer zeros();
Parameters::Initializer ones();
Parameters::Initializer normal(double standard_deviation);
Parameters::Initializer uniform(double bound);  // in [-bound, bound)
// normal(sqrt(2 / fan_out)) for a convolution's weight [out, in, height, width], fan_out = out *
// height * width (He et al. 2015, section 2.2, backward form; torchvision's ResNets).
Parameters::Initializer he_normal();
// Uniform in +-sqrt(6 / (fan_in + fan_out)) for a weight [out, in] (Glorot and Bengio 2010). A
// weight that stacks `parts` matrices (fused query, key, value) is initialised as those matrices.
Parameters::Initializer xavier_uniform(int64_t parts = 1);

}  // namespace lockstep
