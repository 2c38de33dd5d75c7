// Lets a network for images begin with one of transformers, timm or torchvision: model.source, and
// files of weights (run.load_model).
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "data/fetch/hub.h"
#include "models/classifier_folder.h"
#include "models/image_weights.h"
#include "tasks/image_classification.h"

namespace lockstep {

namespace {

const char* const kSourceFile = "network.json";  // of a run that began with model.source

// Writes and reads what a source says of the network; the configuration of the run lacks it.
nlohmann::ordered_json network_json(const ImageClassificationConfig& config) {
  const ImageModelConfig& m = config.model;
  return {{"name", m.name},
          {"stem", m.stem},
          {"width", m.width},
          {"patch", m.patch},
          {"pool", m.pool},
          {"norm_epsilon", m.norm_epsilon},
          {"mean", config.images.mean},
          {"std", config.images.std}};
}

void read_network(const fs::path& file, ImageClassificationConfig& config) {
  try {
    const auto json = nlohmann::json::parse(read_file(file));
    ImageModelConfig& m = config.model;
    m.name = json.at("name");
    m.stem = json.at("stem");
    m.width = json.value("width", int64_t{64});  // absent in 0.1.0
    m.patch = json.at("patch");
    m.pool = json.at("pool");
    m.norm_epsilon = json.at("norm_epsilon");
    config.images.mean = json.at("mean").get<std::vector<double>>();
    config.images.std = json.at("std").get<std::vector<double>>();
  } catch (const nlohmann::json::exception& problem) {
    DataError error("{}: damaged", file.string());
    error.set_cause(problem.what());
    throw error;
  }
}

// Says where a source sees images otherwise than this run does.
void tell_pixels(const ClassifierFolder& there, const ImagesConfig& here) {
  std::vector<std::string> other = there.notes;
  auto differs = [&](const char* key, const std::string& theirs, const std::string& ours) {
    if (theirs != ours) other.push_back(fmt::format("{}: {} there, {} here", key, theirs, ours));
  };
  auto numbers = [](const std::vector<double>& values) {
    return fmt::format("{:g}", fmt::join(values, ", "));
  };
  differs("images.size", std::to_string(there.size), std::to_string(here.size));
  differs("images.interpolation", there.interpolation, here.interpolation);
  differs("images.mean", numbers(there.mean), numbers(pixel_mean(here)));
  differs("images.std", numbers(there.std), numbers(pixel_deviation(here)));
  for (const std::string& line : other) log_info("  {}", line);
}

}  // namespace

fs::path ImageClassification::choose_network() {
  for (const fs::path& folder : {context_.run_folder, context_.resumed_folder}) {
    if (folder.empty()) continue;
    if (fs::exists(folder / kSourceFile)) read_network(folder / kSourceFile, config_);
    return {};  // the weights are in the checkpoint
  }
  if (config_.source.empty()) return {};
  const fs::path source = find_model(config_.source);
  if (!is_classifier_folder(source)) {
    throw DataError(
        "model.source: {}: config.json describes neither a ResNet nor a ViT of transformers or "
        "timm",
        config_.source);
  }
  const ClassifierFolder found = read_classifier_folder(source);
  ImageModelConfig& model = config_.model;
  model.name = found.model.name;
  model.stem = found.model.stem;
  model.width = found.model.width;
  model.patch = found.model.patch;
  model.pool = found.model.pool;
  model.norm_epsilon = found.model.norm_epsilon;
  if (config_.images.mean.empty()) config_.images.mean = found.mean;
  if (config_.images.std.empty()) config_.images.std = found.std;
  log_info("model.source {}: a {}", config_.source, model.name);
  tell_pixels(found, config_.images);
  return source;
}

void ImageClassification::begin_with(const fs::path& source) {
  const fs::path file = image_weights_file(source);
  if (file.empty()) {
    throw DataError(
        "model.source: {}: no weights of a ResNet or ViT: expected model.safetensors "
        "or pytorch_model.bin",
        config_.source);
  }
  const HeadPlan head = plan_head(read_classifier_folder(source).classes, classes_, config_.head);
  log_weights(read_image_weights(file, *model_, parameters_, head));
}

void ImageClassification::log_weights(const ImageWeightsRead& read) const {
  log_info("{} ({} tensors, names of {}) from {}", read.holds, read.tensors,
           flavour_name(read.flavour), read.file.string());
  for (const std::string& note : read.notes) log_info("  {}", note);
}

void ImageClassification::save_network(const fs::path& run_folder) const {
  if (config_.source.empty()) return;
  write_file(run_folder / kSourceFile, network_json(config_).dump(1) + "\n");
}

bool ImageClassification::load_foreign_weights(const fs::path& file) {
  if (image_weights_file(file).empty()) return false;
  log_weights(read_image_weights(file, *model_, parameters_));
  return true;
}

}  // namespace lockstep
