#include "train/checkpoint/checkpoint.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "train/checkpoint/checkpoint_tensors.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kFormat = 2;  // of state.json and what lies beside it

// Returns the arrays with a dot after each name, as the prefixes of names in the file have it.
std::vector<StateArray> with_dots(std::vector<StateArray> arrays) {
  for (StateArray& array : arrays) array.name += ".";
  return arrays;
}

// Reads the outer momentum of local steps; it stays zero where the run has none yet.
void read_outer(const fs::path& checkpoint, CheckpointContent& content) {
  const fs::path path = checkpoint / "outer.safetensors";
  if (!fs::exists(path)) return;
  TensorFile file(path);
  for (const StateArray& array : with_dots(content.outer)) {
    read_array(file, *content.parameters, array);
  }
}

Json state_json(const CheckpointContent& content) {
  Json json = {{"format", kFormat}, {"lockstep", LOCKSTEP_VERSION}};
  json.update(to_json(content.position));
  json["optimizer_steps"] = content.optimizer.steps_done;
  json["guard"] = content.guard;
  return json;
}

// Throws DataError for a checkpoint that a later lockstep wrote in a format of its own.
void check_format(const Json& state, const fs::path& place) {
  const int64_t format = state.value("format", int64_t{kFormat});
  if (format <= kFormat) return;
  const auto version = state.value("lockstep", std::string("a later version"));
  DataError error("{}: the checkpoint has format {}; lockstep {} reads formats up to {}",
                  place.string(), format, LOCKSTEP_VERSION, kFormat);
  error.set_advice(fmt::format("lockstep {}, which wrote it, or a later one", version));
  throw error;
}

// Reads of the checkpoint's state.json what says whether the rest can be read.
void check_format_of(const fs::path& checkpoint) {
  const fs::path place = state_file(checkpoint);
  try {
    check_format(Json::parse(read_file(place)), place);
  } catch (const Json::exception& error) {
    throw DataError("{}: {}", place.string(), error.what());
  }
}

// Undefined tensors stay undefined.
void copy_in_place(torch::Tensor& tensor) {
  if (tensor.defined()) tensor = torch::empty_like(tensor, torch::kCPU).copy_(tensor);
}

}  // namespace

CheckpointContent own_copy(const CheckpointContent& content) {
  torch::NoGradGuard no_grad;
  CheckpointContent out = content;
  if (!out.weights.defined()) out.weights = content.parameters->values();
  if (!out.buffers.defined()) out.buffers = content.parameters->buffers();
  for (torch::Tensor* t : {&out.weights, &out.average, &out.buffers, &out.average_buffers}) {
    copy_in_place(*t);
  }
  for (StateArray& array : out.optimizer.arrays) copy_in_place(array.data);
  for (StateArray& array : out.outer) copy_in_place(array.data);
  for (RankState& state : out.ranks) {
    for (HookArray& array : state.arrays) copy_in_place(array.data);
  }
  return out;
}

int64_t save_checkpoint(const fs::path& folder, const CheckpointContent& content) {
  return write_checkpoint(folder, content.position.step, [&](const fs::path& aside) {
    const Parameters& parameters = *content.parameters;
    const torch::Tensor buffers =
        content.buffers.defined() ? content.buffers : parameters.buffers();
    WrittenFiles files;
    const auto name = [&](const char* stem) { return stem + std::string(".safetensors"); };
    files[name("weights")] =
        write_network(aside / name("weights"), parameters,
                      content.weights.defined() ? content.weights : parameters.values(), buffers);
    if (content.average.defined()) {
      files[name("average")] =
          write_network(aside / name("average"), parameters, content.average,
                        content.average_buffers.defined() ? content.average_buffers : buffers);
    }
    files[name("optimizer")] =
        write_arrays(aside / name("optimizer"), parameters, with_dots(content.optimizer.arrays));
    if (!content.outer.empty()) {
      files[name("outer")] =
          write_arrays(aside / name("outer"), parameters, with_dots(content.outer));
    }
    write_rank_states(aside, content.ranks);
    write_file(aside / "state.json", state_json(content).dump(1) + "\n");
    return files;
  });
}

void save_weights(const fs::path& folder, int64_t step, const std::vector<TensorEntry>& weights) {
  write_checkpoint(folder, step, [&](const fs::path& aside) {
    const WrittenFile written = write_weights(aside / "weights.safetensors", weights);
    Json state = {{"format", kFormat}, {"lockstep", LOCKSTEP_VERSION}};
    state.update(to_json(RunPosition{.step = step}));
    write_file(aside / "state.json", state.dump(1) + "\n");
    return WrittenFiles{{"weights.safetensors", written}};
  });
}

RunPosition load_checkpoint(const fs::path& checkpoint, CheckpointContent& content) {
  torch::NoGradGuard no_grad;
  check_format_of(checkpoint);
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
  for (const StateArray& array : with_dots(content.optimizer.arrays)) {
    read_array(optimizer_file, parameters, array);
  }
  check_count(optimizer_file, parameters, 0);
  read_outer(checkpoint, content);
  fs::path state = state_file(checkpoint);
  read_state(read_file(state), state, content);
  return content.position;
}

void renew_position(const fs::path& folder, const RunPosition& position) {
  const fs::path file = state_file(folder / checkpoint_name(position.step));
  try {
    Json state = Json::parse(read_file(file));
    state.update(to_json(position));
    replace_in_checkpoint(folder, position.step, file.filename().string(), state.dump(1) + "\n");
  } catch (const Json::exception& error) {
    throw DataError("{}: {}", file.string(), error.what());
  }
}

fs::path state_file(const fs::path& checkpoint) { return checkpoint / "state.json"; }

void read_state(const std::string& text, const fs::path& place, CheckpointContent& content) {
  try {
    Json json = Json::parse(text);
    content.position = position_from_json(json);
    content.optimizer.steps_done = json.at("optimizer_steps");
    content.guard = json.at("guard");
  } catch (const Json::exception& error) {
    throw DataError("{}: {}", place.string(), error.what());
  }
}

void load_weights_for_use(const fs::path& checkpoint, Parameters& parameters) {
  torch::NoGradGuard no_grad;
  check_format_of(checkpoint);
  torch::Tensor values = parameters.values();
  torch::Tensor buffers = parameters.buffers();
  read_network(TensorFile(weights_for_use(checkpoint)), parameters, values, buffers);
  parameters.refresh_low();
}

}  // namespace lockstep
