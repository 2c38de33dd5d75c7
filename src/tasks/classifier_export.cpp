#include "tasks/classifier_export.h"

#include "models/image_export.h"

namespace lockstep {

int64_t export_classifier(ImageClassification& task, const ClassifierExportOptions& options) {
  const ImagesConfig& images = task.config().images;
  ImageExport what;
  what.flavour = options.flavour;
  what.precision = options.precision;
  what.classes = task.classes();
  what.size = task.evaluation_size();
  what.resize = images.eval_resize;
  what.interpolation = images.interpolation;
  what.mean = images.mean;
  what.std = images.std;
  return write_image_model(options.folder, task.model(), task.parameters(), what);
}

}  // namespace lockstep
