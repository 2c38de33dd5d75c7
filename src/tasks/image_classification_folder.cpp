// Exports and imports an image classifier as a folder for torchvision, timm or transformers
// (docs/export.md).
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/log.h"
#include "models/classifier_folder.h"
#include "models/image_export.h"
#include "models/image_weight_names.h"
#include "tasks/image_classification.h"

namespace lockstep {

// The folder includes the classes' names and what evaluation does to an image.
int64_t ImageClassification::write_folder(const ModelFolderOptions& options) {
  if (options.precision == "int8") {
    throw ConfigError("--precision int8: for translation only; expected fp32 or bf16");
  }
  const ImagesConfig& images = config_.images;
  ImageExport what;
  what.flavour = flavour_named(options.format);
  what.precision = options.precision;
  what.classes = classes_;
  what.size = evaluation_size();
  what.resize = images.eval_resize;
  what.interpolation = images.interpolation;
  what.mean = pixel_mean(images);
  what.std = pixel_deviation(images);
  return write_image_model(options.folder, *model_, parameters_, what);
}

bool ImageClassification::recognizes_folder(const fs::path& folder) const {
  return is_classifier_folder(folder);
}

std::vector<std::pair<std::string, std::string>> ImageClassification::folder_settings(
    const fs::path& folder) const {
  const ClassifierFolder found = read_classifier_folder(folder);
  for (const std::string& note : found.notes) log_warning("{}: {}", folder.string(), note);
  return {{"model.name", found.model.name},
          {"model.stem", found.model.stem},
          {"model.width", fmt::to_string(found.model.width)},
          {"model.patch", fmt::to_string(found.model.patch)},
          {"model.pool", found.model.pool},
          {"model.norm_epsilon", fmt::to_string(found.model.norm_epsilon)},
          {"images.size", fmt::to_string(found.size)},
          {"images.eval_resize", fmt::to_string(found.resize)},
          {"images.interpolation", found.interpolation},
          {"images.mean", fmt::format("{}", found.mean)},
          {"images.std", fmt::format("{}", found.std)},
          {"run.precision", found.precision}};
}

void ImageClassification::load_folder(const fs::path& folder) {
  if (!load_foreign_weights(folder)) {
    throw DataError("{}: holds no weights of a ResNet or ViT", folder.string());
  }
}

}  // namespace lockstep
