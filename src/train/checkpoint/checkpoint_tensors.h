// Weights, statistics and optimizers' arrays as named tensors of a file (formats/tensor_file.h).
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include "base/file.h"
#include "formats/tensor_file.h"
#include "nn/parameters.h"
#include "optim/optimizer.h"

namespace lockstep {

// `weights`, fp32 [total], and `buffers`, as Parameters::buffers(), by the names of `parameters`.
void write_network(const fs::path& path, const Parameters& parameters, const torch::Tensor& weights,
                   const torch::Tensor& buffers);
// The other way. DataError for another architecture: which tensor, its expected and found shape.
void read_network(const TensorFile& file, const Parameters& parameters, torch::Tensor& weights,
                  torch::Tensor& buffers);

// Weights that have their names already.
void write_weights(const fs::path& path, const std::vector<TensorEntry>& weights);

// Arrays like the weights, or of one number a parameter; an array's name comes before the
// parameter's. DataError as above.
void write_arrays(const fs::path& path, const Parameters& parameters,
                  const std::vector<StateArray>& arrays);
void read_array(const TensorFile& file, const Parameters& parameters, const StateArray& array);

// DataError unless the file holds whole arrays like the weights and `buffers` tensors besides.
void check_count(const TensorFile& file, const Parameters& parameters, std::size_t buffers);

// Copies the shape-alike of a file's tensors into the weights of the same names.
struct MatchedWeights {                     // of weights and buffers
  std::vector<std::string> copied, absent;  // names; absent: not in the file
  std::vector<std::string> other_shape;     // "embedding.weight [42, 16], there [40, 16]"
  std::vector<std::string> unused;          // of the file
};
MatchedWeights load_matching_weights(const fs::path& file, Parameters& parameters);

}  // namespace lockstep
