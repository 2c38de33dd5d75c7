// Declares the uses of a trained model besides evaluation. A task offers the uses that it supports
// (Task::translating() and its like); commands ask for a use and never for a certain task.
#pragma once

#include <torch/types.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "dist/collectives/world.h"

namespace lockstep {

class Translator;  // tasks/translator.h

struct ModelFolderOptions {
  fs::path folder;  // is created; must hold no model yet
  std::string format = "huggingface", precision = "fp32";
  fs::path run_folder;  // run to which the model belongs
};

// The model as a folder with a config.json, for other programs or written by them.
class ModelFolderUse {
 public:
  virtual ~ModelFolderUse() = default;
  // Returns the bytes written. Throws ConfigError for an unknown format, precision or variant and
  // for a folder that holds a model, MachineError when the disk refuses.
  virtual int64_t write_folder(const ModelFolderOptions& options) = 0;

  // Whether config.json is of such a model. Called for tasks that are not open.
  virtual bool recognizes_folder(const fs::path& folder) const = 0;
  // Returns the settings in config.json as configuration keys and their values. Throws DataError
  // when it is damaged.
  virtual std::vector<std::pair<std::string, std::string>> folder_settings(
      const fs::path& folder) const = 0;
  // Loads the weights, after open() with that configuration. Throws DataError that names what is
  // missing or of another shape.
  virtual void load_folder(const fs::path& folder) = 0;
  // Returns the names of files that such a folder may have and reading it may need, besides
  // config.json and the weights.
  virtual std::vector<std::string> companion_files() const { return {}; }
};

// The score of a given translation, piece by piece; </s> is the last piece.
struct ScoredPair {
  std::vector<std::string> pieces;
  std::vector<float> log_probability;  // natural
};

class TranslationUse {
 public:
  virtual ~TranslationUse() = default;
  // Returns a translator with the weights as they are now; valid while the task
  // lives and is not trained.
  virtual std::unique_ptr<Translator> translator() const = 0;
  // Translates the lines, divided among the ranks; every rank gets the result, in the order of the
  // lines. Which sentences are decoded together does not depend on the number of ranks, so neither
  // does the result.
  virtual std::vector<std::string> translate_shared(
      World& world, const std::vector<std::string>& lines) const = 0;
  // Returns how probable each given translation of a line is (tasks/scoring.h). REQUIRES one target
  // per source.
  virtual std::vector<ScoredPair> score(const std::vector<std::string>& sources,
                                        const std::vector<std::string>& targets) const = 0;
  // Describes the network and how it decodes, in a few words.
  virtual std::string model_text() const = 0;
};

struct ClassProbability {
  std::string name;
  double probability = 0;
};

class ImageUse {
 public:
  virtual ~ImageUse() = default;
  // Reads a file as evaluation sees it: [1, 3, size, size]. Throws DataError, with the file's name,
  // when it is no image.
  virtual torch::Tensor read_image(const fs::path& file) const = 0;
  // Returns for images [n, 3, size, size] the `most` most probable classes, most probable first.
  virtual std::vector<std::vector<ClassProbability>> classify(const torch::Tensor& images,
                                                              int64_t most) const = 0;
};

// A text, or a pair of them.
struct TextPair {
  std::string text;
  std::optional<std::string> pair = {};
};

class TextUse {
 public:
  virtual ~TextUse() = default;
  virtual bool predicts_values() const = 0;  // regression; false: classes
  // Returns fp32 [texts, labels]; texts are cut to what the network takes. Throws DataError when
  // one is not valid UTF-8.
  virtual torch::Tensor score(const std::vector<TextPair>& texts) const = 0;
  // Returns the `most` most probable classes of each text, most probable first. Not for regression.
  virtual std::vector<std::vector<ClassProbability>> classify(const std::vector<TextPair>& texts,
                                                              int64_t most) const = 0;
};

}  // namespace lockstep
