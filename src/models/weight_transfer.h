// Provides what is needed to read and write the weight files of other programs, for all networks.
// Which tensor of theirs corresponds to which of ours is defined for each network
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

// A parameter or buffer of ours. TORCH_CHECK fails when there is none of that name.
struct OwnTensor {
  torch::Tensor value;  // fp32, no gradient
  std::vector<int64_t> shape;
};
OwnTensor own_tensor(const Parameters& parameters, const std::string& name);

// One tensor of theirs: `rows` rows, from `begin` on, of one of ours (a parameter or a buffer).
// Where both have as many rows the shapes may still differ: [1, tokens, d] for our [tokens, d].
struct WeightPlace {
  std::string theirs, ours;
  std::vector<int64_t> shape;  // of theirs
  int64_t begin = 0, rows = 0;
  bool is_head = false;  // whether it is in the last layer, which depends on the number of classes
};

std::string shape_text(const std::vector<int64_t>& shape);  // "[768, 3072]"

// Returns a copy of a tensor of a file. Throws DataError, naming `file`, for other types than F32,
// F16, BF16, F64.
torch::Tensor as_fp32(const fs::path& file, const TensorEntry& entry);

// Throws DataError: the tensors of `file` are not those of the network that reads them.
[[noreturn]] void refuse_weights(const fs::path& file, const std::string& difference);

// Adds what is told of tensors that were not read, named in the order of their file, to `notes`: "3
// tensors of no use here: cls.bias, ...". Of none nothing is told.
void note_unused_tensors(const std::vector<std::string>& names, std::vector<std::string>& notes);

// Collects tensors and writes them to a file.
class WeightWriter {
 public:
  // `precision`: "fp32", or "bf16", which rounds tensors of two dimensions and more.
  explicit WeightWriter(const std::string& precision) : low_(precision == "bf16") {}

  void add(const std::string& name, const torch::Tensor& value, const std::vector<int64_t>& shape);
  // The same, never rounded.
  void add_exact(const std::string& name, const torch::Tensor& value,
                 const std::vector<int64_t>& shape);
  void add_count(const std::string& name);  // batches that a batch norm has seen; read by nobody
  // Writes the file as transformers and others expect it, with the name of its writer.
  void write(const fs::path& path) const;
  int64_t bytes() const { return bytes_; }

 private:
  void keep(const std::string& name, const torch::Tensor& value, DType dtype);

  bool low_;
  int64_t bytes_ = 0;
  std::vector<torch::Tensor> tensors_;
  std::vector<TensorEntry> entries_;
};

// Creates the folder if needed. Throws ConfigError when it already holds a model.
void make_model_folder(const fs::path& folder);

}  // namespace lockstep
