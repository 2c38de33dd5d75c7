#include "train/checkpoint.h"

#include <fmt/ranges.h>
#include <algorithm>
#include <functional>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

const TensorMetadata kMetadata = {{"format", "pt"}, {"lockstep", LOCKSTEP_VERSION}};

// One entry for every parameter: its slice of a flat fp32 array on the CPU, without copying.
void add_entries(const Parameters& parameters, const torch::Tensor& flat, const std::string& prefix,
                 std::vector<TensorEntry>& out) {
  auto base = static_cast<const std::byte*>(flat.const_data_ptr());
  for (const ParameterRef& p : parameters.list()) {
    std::span<const std::byte> data(base + p->offset * 4, static_cast<std::size_t>(p->numel) * 4);
    out.push_back({prefix + p->name, DType::kF32, p->shape, data});
  }
}

// The same of the buffers.
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

// The slice of one tensor: T is Parameter or Buffer.
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

// `buffers` beside the parameters' arrays that a file holds.
void check_count(const TensorFile& file, const Parameters& parameters, std::size_t buffers) {
  const std::size_t found = file.entries().size(), weights = parameters.list().size();
  if (found >= buffers && (found - buffers) % weights == 0) return;
  throw DataError("{}: {} tensors, expected {}; another architecture?", file.path().string(), found,
                  weights + buffers);
}

void read_entries(const TensorFile& file, const Parameters& parameters, const std::string& prefix,
                  torch::Tensor& flat) {
  torch::Tensor host = torch::zeros_like(flat, flat.options().device(torch::kCPU));
  auto base = static_cast<std::byte*>(host.mutable_data_ptr());
  for (const ParameterRef& p : parameters.list()) read_entry(file, *p, prefix + p->name, base);
  flat.copy_(host);
}

// A network: its weights and its buffers. REQUIRES: `buffers` is as Parameters::buffers().
void read_network(const TensorFile& file, const Parameters& parameters, torch::Tensor& weights,
                  torch::Tensor& buffers) {
  read_entries(file, parameters, "", weights);
  torch::Tensor host = buffers.to(torch::kCPU, /*non_blocking=*/false, /*copy=*/true);
  auto base = static_cast<std::byte*>(host.mutable_data_ptr());
  for (const BufferRef& b : parameters.buffer_list()) read_entry(file, *b, b->name, base);
  buffers.copy_(host);
  check_count(file, parameters, parameters.buffer_list().size());
}

// One number for every parameter.
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

void write_arrays(const fs::path& path, const Parameters& parameters,
                  const std::vector<StateArray>& arrays) {
  std::vector<TensorEntry> entries;
  std::vector<torch::Tensor> host;  // keeps copies from a GPU alive
  for (const auto& [prefix, data, per_layer] : arrays) {
    host.push_back(data.to(torch::kCPU));
    (per_layer ? add_layer_entries : add_entries)(parameters, host.back(), prefix, entries);
  }
  write_tensor_file(path, entries, kMetadata);
}

void write_network(const fs::path& path, const Parameters& parameters, const torch::Tensor& weights,
                   const torch::Tensor& buffers) {
  const torch::Tensor host = weights.to(torch::kCPU), host_buffers = buffers.to(torch::kCPU);
  std::vector<TensorEntry> entries;
  add_entries(parameters, host, "", entries);
  add_buffers(parameters, host_buffers, entries);
  write_tensor_file(path, entries, kMetadata);
}

// With the names' prefixes as in the file.
std::vector<StateArray> with_dots(std::vector<StateArray> arrays) {
  for (StateArray& array : arrays) array.name += ".";
  return arrays;
}

// The outer momentum of local steps; zero where the run had none so far.
void read_outer(const fs::path& checkpoint, CheckpointContent& content) {
  const fs::path path = checkpoint / "outer.safetensors";
  if (!fs::exists(path)) return;
  TensorFile file(path);
  for (auto& [prefix, data, per_layer] : with_dots(content.outer)) {
    read_entries(file, *content.parameters, prefix, data);
  }
}

Json state_json(const CheckpointContent& content) {
  Json json = {{"format", 2}, {"lockstep", LOCKSTEP_VERSION}};
  json.update(to_json(content.position));
  json["optimizer_steps"] = content.optimizer.steps_done;
  if (!content.guard.empty()) json["guard"] = content.guard;
  return json;
}

// DONE: {"weights.safetensors": {"bytes": n, "sha256": "..."}, ...}
int64_t write_done(const fs::path& folder) {
  Json done;
  int64_t total = 0;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    auto bytes = static_cast<int64_t>(fs::file_size(file));
    done[file.filename().string()] = {{"bytes", bytes}, {"sha256", sha256_of_file(file)}};
    total += bytes;
  }
  write_file(folder / "DONE", done.dump(1) + "\n");
  return total;
}

std::vector<fs::path> all_checkpoints(const fs::path& folder) {
  std::vector<fs::path> out;
  if (!fs::exists(folder)) return out;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && checkpoint_step(entry.path()) >= 0) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end(), [](const fs::path& a, const fs::path& b) {
    return checkpoint_step(a) > checkpoint_step(b);
  });
  return out;
}

Json read_json(const fs::path& path) {
  try {
    return Json::parse(read_file(path));
  } catch (const Json::exception& error) {
    throw DataError("{}: not valid JSON: {}", path.string(), error.what());
  }
}

// Has `write` fill a folder beside FOLDER/step_N, adds DONE and renames it. Returns its bytes.
int64_t write_checkpoint(const fs::path& folder, int64_t step,
                         const std::function<void(const fs::path& aside)>& write) {
  fs::path target = folder / checkpoint_name(step);
  fs::path aside = target;
  aside += ".part";
  try {
    fs::remove_all(aside);
    fs::create_directories(aside);
    write(aside);
    int64_t bytes = write_done(aside);
    sync_folder(aside);
    fs::remove_all(target);
    fs::rename(aside, target);
    sync_folder(folder);
    return bytes;
  } catch (const fs::filesystem_error& error) {
    std::error_code ignored;
    fs::remove_all(aside, ignored);
    throw MachineError("{}: cannot be saved: {}", target.string(), error.what());
  } catch (Error& error) {
    std::error_code ignored;
    fs::remove_all(aside, ignored);
    error.add_context("saving the checkpoint " + target.string());
    throw;
  }
}

}  // namespace

std::string checkpoint_name(int64_t step) { return fmt::format("step_{}", step); }

int64_t checkpoint_step(const fs::path& checkpoint) {
  std::string name = checkpoint.filename().string();
  bool named = name.starts_with("step_") && name.size() > 5 &&
               name.find_first_not_of("0123456789", 5) == std::string::npos;
  return named ? std::stoll(name.substr(5)) : -1;
}

int64_t save_checkpoint(const fs::path& folder, const CheckpointContent& content) {
  return write_checkpoint(folder, content.position.step, [&](const fs::path& aside) {
    const Parameters& parameters = *content.parameters;
    const torch::Tensor buffers =
        content.buffers.defined() ? content.buffers : parameters.buffers();
    write_network(aside / "weights.safetensors", parameters, parameters.values(), buffers);
    if (content.average.defined()) {
      write_network(aside / "average.safetensors", parameters, content.average,
                    content.average_buffers.defined() ? content.average_buffers : buffers);
    }
    write_arrays(aside / "optimizer.safetensors", parameters, with_dots(content.optimizer.arrays));
    if (!content.outer.empty()) {
      write_arrays(aside / "outer.safetensors", parameters, with_dots(content.outer));
    }
    write_rank_states(aside, content.ranks);
    write_file(aside / "state.json", state_json(content).dump(1) + "\n");
  });
}

void save_weights(const fs::path& folder, int64_t step, const std::vector<TensorEntry>& weights) {
  write_checkpoint(folder, step, [&](const fs::path& aside) {
    write_tensor_file(aside / "weights.safetensors", weights, kMetadata);
    Json state = {{"format", 2}, {"lockstep", LOCKSTEP_VERSION}};
    state.update(to_json(RunPosition{.step = step}));
    write_file(aside / "state.json", state.dump(1) + "\n");
  });
}

std::string checkpoint_damage(const fs::path& checkpoint) {
  if (!fs::exists(checkpoint / "DONE")) return "it has no DONE file: it was not finished";
  try {
    Json done = read_json(checkpoint / "DONE");
    for (const auto& [name, expected] : done.items()) {
      fs::path file = checkpoint / name;
      if (!fs::exists(file)) return name + " is missing";
      auto bytes = static_cast<int64_t>(fs::file_size(file));
      auto expected_bytes = expected.at("bytes").get<int64_t>();
      if (bytes != expected_bytes) {
        return fmt::format("{} has {} bytes, DONE says {}", name, with_commas(bytes),
                           with_commas(expected_bytes));
      }
      if (sha256_of_file(file) != expected.at("sha256").get<std::string>()) {
        return name + " has another hash than DONE says: its bytes changed";
      }
    }
  } catch (const Json::exception& error) {
    return std::string("DONE is damaged: ") + error.what();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::vector<fs::path> complete_checkpoints(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const fs::path& checkpoint : all_checkpoints(folder)) {
    std::string damage = checkpoint_damage(checkpoint);
    if (damage.empty()) {
      out.push_back(checkpoint);
    } else {
      log_warning("{} is passed over: {}", checkpoint.string(), damage);
    }
  }
  return out;
}

std::optional<fs::path> newest_complete_checkpoint(const fs::path& folder) {
  std::optional<fs::path> newest;
  for (const fs::path& checkpoint : all_checkpoints(folder)) {
    std::string damage = checkpoint_damage(checkpoint);
    if (damage.empty()) {
      newest = checkpoint;
      break;
    }
    log_warning("{} is passed over: {}", checkpoint.string(), damage);
  }
  if (!fs::exists(folder)) return newest;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".part") continue;
    int64_t step = checkpoint_step(fs::path(entry.path()).replace_extension());
    if (step < 0 || (newest && step <= checkpoint_step(*newest))) continue;
    log_warning("{} is passed over: it was not finished", entry.path().string());
  }
  return newest;
}

RunPosition load_checkpoint(const fs::path& checkpoint, CheckpointContent& content) {
  torch::NoGradGuard no_grad;
  const Parameters& parameters = *content.parameters;
  torch::Tensor values = parameters.values();
  torch::Tensor buffers = content.buffers.defined() ? content.buffers : parameters.buffers();
  read_network(TensorFile(checkpoint / "weights.safetensors"), parameters, values, buffers);
  if (content.average.defined()) {
    fs::path average = checkpoint / "average.safetensors";
    fs::path source = fs::exists(average) ? average : checkpoint / "weights.safetensors";
    torch::Tensor average_buffers =
        content.average_buffers.defined() ? content.average_buffers : buffers.clone();
    read_network(TensorFile(source), parameters, content.average, average_buffers);
  }
  if (!fs::exists(checkpoint / "optimizer.safetensors")) {
    DataError error("{}: holds weights alone, without the optimizer's state", checkpoint.string());
    error.set_advice(fmt::format("a new run from them: run.load_model={}", checkpoint.string()));
    throw error;
  }
  TensorFile optimizer_file(checkpoint / "optimizer.safetensors");
  for (auto& [prefix, data, per_layer] : with_dots(content.optimizer.arrays)) {
    (per_layer ? read_layer_entries : read_entries)(optimizer_file, parameters, prefix, data);
  }
  check_count(optimizer_file, parameters, 0);
  read_outer(checkpoint, content);
  fs::path state = state_file(checkpoint);
  read_state(read_file(state), state, content);
  return content.position;
}

fs::path state_file(const fs::path& checkpoint) { return checkpoint / "state.json"; }

void read_state(const std::string& text, const fs::path& place, CheckpointContent& content) {
  try {
    Json json = Json::parse(text);
    content.position = position_from_json(json);
    content.optimizer.steps_done = json.at("optimizer_steps");
    if (json.contains("guard")) content.guard = json.at("guard");
  } catch (const Json::exception& error) {
    throw DataError("{}: {}", place.string(), error.what());
  }
}

fs::path weights_for_use(const fs::path& checkpoint) {
  fs::path average = checkpoint / "average.safetensors";
  return fs::exists(average) ? average : checkpoint / "weights.safetensors";
}

void load_weights_for_use(const fs::path& checkpoint, Parameters& parameters) {
  torch::NoGradGuard no_grad;
  torch::Tensor values = parameters.values();
  torch::Tensor buffers = parameters.buffers();
  read_network(TensorFile(weights_for_use(checkpoint)), parameters, values, buffers);
  parameters.refresh_low();
}

namespace {

// Takes what the file has of the same names and shapes: T is Parameter or Buffer.
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

void remove_old_checkpoints(const fs::path& folder, int64_t keep, const std::set<int64_t>& best) {
  int64_t kept = 0;
  for (const fs::path& checkpoint : all_checkpoints(folder)) {
    if (kept++ < keep || best.contains(checkpoint_step(checkpoint))) continue;
    std::error_code failed;
    // DONE goes first: what is half removed must not look whole.
    fs::remove(checkpoint / "DONE", failed);
    fs::remove_all(checkpoint, failed);
    if (failed) log_warning("{} cannot be removed: {}", checkpoint.string(), failed.message());
  }
}

namespace {

Validation validation_of(const fs::path& checkpoint) {
  fs::path state = checkpoint / "state.json";
  try {
    return position_from_json(read_json(state)).validation;
  } catch (const Json::exception& error) {
    throw DataError("{}: {}", state.string(), error.what());
  }
}

// `complete`: newest first, at least one.
std::vector<fs::path> best_of(const std::vector<fs::path>& complete, const std::string& metric) {
  Validation validation = validation_of(complete.front());
  std::vector<std::string> names;
  for (const MetricHistory& history : validation) {
    names.push_back(history.metric);
    if (!metric.empty() && history.metric != metric) continue;
    std::vector<fs::path> out;
    for (const RankedStep& best : history.best) {
      auto found = std::find_if(complete.begin(), complete.end(),
                                [&](const fs::path& c) { return checkpoint_step(c) == best.step; });
      if (found != complete.end()) {
        out.push_back(*found);
      } else {
        log_warning("{}, one of the best by {}, is not there or damaged",
                    checkpoint_name(best.step), history.metric);
      }
    }
    return out;
  }
  if (metric.empty()) return {};  // nothing was evaluated
  throw DataError("{}: \"{}\" was not among evaluation.metrics{} ({})",
                  complete.front().parent_path().string(), metric, did_you_mean(metric, names),
                  join(names, ", "));
}

std::vector<fs::path> at_least_one_checkpoint(const fs::path& folder) {
  std::vector<fs::path> complete = complete_checkpoints(folder);
  if (complete.empty()) throw DataError("{}: no complete checkpoint", folder.string());
  return complete;
}

}  // namespace

std::vector<fs::path> best_checkpoints(const fs::path& folder, const std::string& metric) {
  return best_of(at_least_one_checkpoint(folder), metric);
}

fs::path find_checkpoint(const fs::path& folder, const std::string& which) {
  std::vector<fs::path> complete = at_least_one_checkpoint(folder);
  if (which == "newest") return complete.front();
  if (which == "best" || which.starts_with("best-")) {
    std::vector<fs::path> best = best_of(complete, which == "best" ? "" : which.substr(5));
    return best.empty() ? complete.front() : best.front();
  }
  std::vector<std::string> names;
  for (const fs::path& checkpoint : complete) {
    names.push_back(checkpoint.filename().string());
    if (names.back() == which) return checkpoint;
  }
  throw DataError("{}: no complete checkpoint \"{}\"{} (best, newest, {})", folder.string(), which,
                  did_you_mean(which, names), join(names, ", "));
}

}  // namespace lockstep
