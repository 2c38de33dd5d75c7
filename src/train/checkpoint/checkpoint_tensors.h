// Stores weights, statistics and optimizers' arrays as named tensors of a file
// (formats/tensor_file.h).
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "base/file.h"
#include "formats/tensor_file.h"
#include "nn/parameters.h"
#include "optim/optimizers/optimizer.h"

namespace lockstep {

// Writes `weights`, fp32 [total], and `buffers`, laid out as Parameters::buffers(), under the names
// of `parameters`.
WrittenFile write_network(const fs::path& path, const Parameters& parameters,
                          const torch::Tensor& weights, const torch::Tensor& buffers);
// Reads what write_network() wrote. Throws DataError for another architecture, naming the tensor,
// its expected and its found shape.
void read_network(const TensorFile& file, const Parameters& parameters, torch::Tensor& weights,
                  torch::Tensor& buffers);

// Writes weights that already have their names.
WrittenFile write_weights(const fs::path& path, const std::vector<TensorEntry>& weights);

// Writes tensors of any device and of the types of formats/tensor_file.h.
WrittenFile write_named_tensors(const fs::path& path,
                                const std::vector<std::pair<std::string, torch::Tensor>>& tensors);

// Write and read optimizer arrays, which have one number per weight or per parameter; the array's
// name precedes the parameter's. Reading throws DataError as read_network() does.
WrittenFile write_arrays(const fs::path& path, const Parameters& parameters,
                         const std::vector<StateArray>& arrays);
void read_array(const TensorFile& file, const Parameters& parameters, const StateArray& array);

// Throws DataError unless the file holds whole arrays laid out as the weights, and `buffers`
// tensors besides.
void check_count(const TensorFile& file, const Parameters& parameters, std::size_t buffers);

// Copies a file's tensors into the weights of the same names and shapes.
struct MatchedWeights {                     // names of weights and buffers
  std::vector<std::string> copied, absent;  // absent: not in the file
  std::vector<std::string> other_shape;     // "embedding.weight [42, 16], there [40, 16]"
  std::vector<std::string> unused;          // in the file, not in the model
};
MatchedWeights load_matching_weights(const fs::path& file, Parameters& parameters);

}  // namespace lockstep
