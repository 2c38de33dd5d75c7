// Weights on their way from and to files of other programs: what all networks' files have in
// common. Which tensor of theirs is which of ours is each network's own business
// (image_weight_names.h, bert_weights.h).
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "formats/tensor_file.h"
#include "nn/parameters.h"

namespace lockstep {

// A parameter or buffer of ours. TORCH_CHECK: there is none of that name.
struct OwnTensor {
  torch::Tensor value;  // fp32, no gradient
  std::vector<int64_t> shape;
};
OwnTensor own_tensor(const Parameters& parameters, const std::string& name);

// One tensor of theirs: `rows` rows from `begin` on of one of ours (a parameter or a buffer). Where
// both have as many rows the shapes may still differ: [1, tokens, d] for our [tokens, d].
struct WeightPlace {
  std::string theirs, ours;
  std::vector<int64_t> shape;  // of theirs
  int64_t begin = 0, rows = 0;
  bool is_head = false;  // of the last layer, which depends on the number of classes
};

std::string shape_text(const std::vector<int64_t>& shape);  // "[768, 3072]"

// A tensor of a file, copied. DataError, naming `file`, for other types than F32, F16, BF16, F64.
torch::Tensor as_fp32(const fs::path& file, const TensorEntry& entry);

// Tensors on their way into a file.
class WeightWriter {
 public:
  // "fp32", or "bf16": tensors of two dimensions and more are rounded.
  explicit WeightWriter(const std::string& precision) : low_(precision == "bf16") {}

  void add(const std::string& name, const torch::Tensor& value, const std::vector<int64_t>& shape);
  void add_count(const std::string& name);  // of batches that a batch norm saw; read by nobody
  // As transformers and others expect them, with who wrote them.
  void write(const fs::path& path) const;
  int64_t bytes() const { return bytes_; }

 private:
  void keep(const std::string& name, const torch::Tensor& value, DType dtype);

  bool low_;
  int64_t bytes_ = 0;
  std::vector<torch::Tensor> tensors_;
  std::vector<TensorEntry> entries_;
};

// Makes the folder where needed. ConfigError when it holds a model already.
void make_model_folder(const fs::path& folder);

}  // namespace lockstep
