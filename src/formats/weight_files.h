// Reads the weights of a model as one list of tensors, however they are stored: as a safetensors
// file, as a file of torch.save, or as several of either with an index, as transformers saves large
// models.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "formats/tensor_file.h"
#include "formats/zip_file.h"

namespace lockstep {

// The tensors of a file that torch.save wrote: a dictionary of names and tensors in a zip archive.
// The pickle in it is not executed (formats/pickle.h). The file is memory-mapped.
class TorchArchive {
 public:
  // Throws DataError for a file that is older than torch 1.6 or damaged, a pickle that names more
  // than tensors, and a tensor that is not dense in row-major order or exceeds its storage.
  explicit TorchArchive(const fs::path& path);
  const std::vector<TensorEntry>& entries() const { return entries_; }

 private:
  ZipFile zip_;
  std::vector<TensorEntry> entries_;
};

// Returns the first of model.safetensors, model.safetensors.index.json, pytorch_model.bin and
// pytorch_model.bin.index.json that exists in the folder, or an empty path.
fs::path find_weight_file(const fs::path& folder);

// Returns the files that an index names, without their folder, ascending; none if `path` is not an
// index. Throws DataError if it is damaged or names a file outside its folder.
std::vector<std::string> files_of_index(const fs::path& path);

class WeightFiles {
 public:
  // `path` is a .safetensors file, an index (.index.json) or, with any other ending, a file of
  // torch.save. Throws DataError if it is damaged or the index names a file or tensor that does not
  // exist.
  explicit WeightFiles(const fs::path& path);

  const fs::path& path() const { return path_; }
  const std::vector<TensorEntry>& entries() const { return entries_; }
  const TensorEntry* find(const std::string& name) const;  // null when absent

 private:
  void add_file(const fs::path& path);
  void add_index();

  fs::path path_;
  std::vector<std::unique_ptr<TensorFile>> tensor_files_;
  std::vector<std::unique_ptr<TorchArchive>> archives_;
  std::vector<TensorEntry> entries_;
  std::unordered_map<std::string, std::size_t> index_;  // name -> index in entries_
};

}  // namespace lockstep
