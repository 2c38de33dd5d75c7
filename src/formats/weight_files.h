// The weights of a model as one list of tensors, however they lie on disk: a safetensors file, what
// torch.save writes, or several of either with an index, as transformers saves large models.
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
// Nothing of its pickle is run (formats/pickle.h). Memory-mapped.
class TorchArchive {
 public:
  // DataError: older than torch 1.6, damaged, a pickle that names more than tensors, a tensor that
  // is not dense in row-major order or goes beyond its storage.
  explicit TorchArchive(const fs::path& path);
  const std::vector<TensorEntry>& entries() const { return entries_; }

 private:
  ZipFile zip_;
  std::vector<TensorEntry> entries_;
};

// The first of model.safetensors, model.safetensors.index.json, pytorch_model.bin and
// pytorch_model.bin.index.json that the folder holds; empty: none.
fs::path find_weight_file(const fs::path& folder);

// The files that an index names, without their folder, ascending; none for any other file.
// DataError: damaged, or it names a file outside its folder.
std::vector<std::string> files_of_index(const fs::path& path);

class WeightFiles {
 public:
  // `path`: a .safetensors file, one of torch.save (any other ending), or an index (.index.json).
  // DataError: damaged, or the index names a file or tensor that is not there.
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
  std::unordered_map<std::string, std::size_t> index_;  // name -> place in entries_
};

}  // namespace lockstep
