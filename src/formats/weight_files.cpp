#include "formats/weight_files.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "formats/pickle.h"

namespace lockstep {

namespace {

constexpr const char* kIndexEnding = ".index.json";

// Returns whether the tensor is row-major without gaps. The stride of a dimension of size 1 does
// not matter.
bool is_dense(const PickleTensor& tensor) {
  int64_t expected = 1;
  for (std::size_t i = tensor.shape.size(); i-- > 0;) {
    if (tensor.shape[i] != 1 && tensor.stride[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

// Returns the number of elements. Throws DataError for impossible sizes.
int64_t elements_of(const PickleTensor& tensor, const std::string& where) {
  int64_t count = 1;
  for (int64_t n : tensor.shape) {
    if (n < 0 || __builtin_mul_overflow(count, n, &count)) {
      throw DataError("{}: an impossible shape", where);
    }
  }
  if (tensor.offset < 0 || tensor.offset > tensor.storage.elements ||
      count > tensor.storage.elements - tensor.offset) {
    throw DataError("{}: {} elements from {} on, its storage has {}", where, count, tensor.offset,
                    tensor.storage.elements);
  }
  return count;
}

// Returns the name of the file of each tensor.
std::map<std::string, std::string> read_index(const fs::path& path) {
  try {
    return nlohmann::json::parse(read_file(path))
        .at("weight_map")
        .get<std::map<std::string, std::string>>();
  } catch (const nlohmann::json::exception& problem) {
    DataError error("{}: damaged; expected an object with a weight_map", path.string());
    error.set_cause(problem.what());
    throw error;
  }
}

}  // namespace

TorchArchive::TorchArchive(const fs::path& path)
    : zip_([&] {
        if (is_zip_file(path)) return ZipFile(path);
        DataError error("{}: not a file of torch.save, or from before torch 1.6", path.string());
        error.set_advice("load and save it again with a newer torch, or use safetensors");
        throw error;
      }()) {
  std::string root;  // the folder of the archive's entries
  for (const auto& [name, bytes] : zip_.entries()) {
    if (name == "data.pkl" || name.ends_with("/data.pkl")) {
      root = name.substr(0, name.size() - 8);
    }
  }
  const auto pickle = zip_.entries().find(root + "data.pkl");
  if (pickle == zip_.entries().end()) {
    throw DataError("{}: a zip archive without data.pkl, so not of torch.save", path.string());
  }
  const auto order = zip_.entries().find(root + "byteorder");
  if (order != zip_.entries().end() && order->second.size() == 3) {  // "big"
    throw DataError("{}: big-endian; expected little-endian", path.string());
  }
  const std::string name = path.string() + ":" + pickle->first;
  const Pickle value = read_pickle(pickle->second, name);
  const auto* dict = std::get_if<PickleDict>(value.root);
  if (dict == nullptr) throw DataError("{}: holds no dictionary of tensors", name);
  for (const auto& [key, item] : dict->items) {
    const auto* text = std::get_if<std::string>(key);
    const auto* tensor = std::get_if<PickleTensor>(item);
    if (text == nullptr || tensor == nullptr) continue;
    const std::string where = fmt::format("{}: tensor {}", path.string(), *text);
    const int64_t count = elements_of(*tensor, where);
    if (!is_dense(*tensor)) throw DataError("{}: not dense in row-major order", where);
    const auto storage = zip_.entries().find(root + "data/" + tensor->storage.key);
    if (storage == zip_.entries().end()) {
      throw DataError("{}: its storage {} is missing", where, tensor->storage.key);
    }
    const std::size_t each = dtype_bytes(tensor->storage.dtype);
    if (storage->second.size() / each < static_cast<uint64_t>(tensor->storage.elements)) {
      throw DataError("{}: its storage has {} bytes, expected {} elements of {}", where,
                      storage->second.size(), tensor->storage.elements, each);
    }
    entries_.push_back({*text, tensor->storage.dtype, tensor->shape,
                        storage->second.subspan(static_cast<std::size_t>(tensor->offset) * each,
                                                static_cast<std::size_t>(count) * each)});
  }
  if (entries_.empty()) throw DataError("{}: its dictionary holds no tensors", name);
}

fs::path find_weight_file(const fs::path& folder) {
  for (const char* name : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                           "pytorch_model.bin.index.json"}) {
    if (fs::exists(folder / name)) return folder / name;
  }
  return {};
}

std::vector<std::string> files_of_index(const fs::path& path) {
  if (!path.string().ends_with(kIndexEnding)) return {};
  std::set<std::string> files;
  for (const auto& [name, file] : read_index(path)) {
    if (file.find('/') != std::string::npos || file.starts_with('.')) {
      throw DataError("{}: names {}, outside its folder", path.string(), file);
    }
    files.insert(file);
  }
  return {files.begin(), files.end()};
}

WeightFiles::WeightFiles(const fs::path& path) : path_(path) {
  if (path.string().ends_with(kIndexEnding)) {
    add_index();
  } else {
    add_file(path);
  }
}

void WeightFiles::add_file(const fs::path& path) {
  const std::vector<TensorEntry>* entries;
  if (path.extension() == ".safetensors") {
    entries = &tensor_files_.emplace_back(std::make_unique<TensorFile>(path))->entries();
  } else {
    entries = &archives_.emplace_back(std::make_unique<TorchArchive>(path))->entries();
  }
  for (const TensorEntry& entry : *entries) {
    index_[entry.name] = entries_.size();
    entries_.push_back(entry);
  }
}

void WeightFiles::add_index() {
  const std::map<std::string, std::string> index = read_index(path_);
  for (const std::string& file : files_of_index(path_)) add_file(path_.parent_path() / file);
  for (const auto& [name, file] : index) {
    if (find(name) == nullptr) {
      throw DataError("{}: names the tensor {}, which none of its files holds", path_.string(),
                      name);
    }
  }
}

const TensorEntry* WeightFiles::find(const std::string& name) const {
  const auto at = index_.find(name);
  return at == index_.end() ? nullptr : &entries_[at->second];
}

}  // namespace lockstep
