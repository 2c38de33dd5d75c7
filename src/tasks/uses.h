// What a trained model can be used for besides being evaluated. A task offers the uses that it
// knows (Task::translating() and its like); commands ask for a use and never which task it is.
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
  fs::path folder;  // is made; holds no model yet
  std::string format = "huggingface", precision = "fp32";
  fs::path run_folder;  // that the model is of
};

// The model as a folder with a config.json that other programs load, or wrote.
class ModelFolderUse {
 public:
  virtual ~ModelFolderUse() = default;
  // Returns the bytes written. ConfigError: a format, precision or variant that there is not, a
  // folder that holds a model; MachineError when the disk refuses.
  virtual int64_t write_folder(const ModelFolderOptions& options) = 0;

  // Whether config.json is of such a model. Asked of tasks that are not open.
  virtual bool recognizes_folder(const fs::path& folder) const = 0;
  // What config.json says, as keys of a configuration and their values. DataError: damaged.
  virtual std::vector<std::pair<std::string, std::string>> folder_settings(
      const fs::path& folder) const = 0;
  // The weights, after open() with that configuration. DataError names what is missing or of
  // another shape.
  virtual void load_folder(const fs::path& folder) = 0;
};

// A given translation, piece by piece, </s> the last.
struct ScoredPair {
  std::vector<std::string> pieces;
  std::vector<float> log_probability;  // natural
};

class TranslationUse {
 public:
  virtual ~TranslationUse() = default;
  // With the weights as they are now; valid as long as the task and no training goes on.
  virtual std::unique_ptr<Translator> translator() const = 0;
  // Sharded over the ranks, result on every rank in the order of the lines. Which sentences are
  // decoded together does not depend on the number of ranks, so neither does the result.
  virtual std::vector<std::string> translate_shared(
      World& world, const std::vector<std::string>& lines) const = 0;
  // How probable each given translation of a line is (tasks/scoring.h). REQUIRES as many targets.
  virtual std::vector<ScoredPair> score(const std::vector<std::string>& sources,
                                        const std::vector<std::string>& targets) const = 0;
  // The network and how it decodes, in a few words.
  virtual std::string model_text() const = 0;
};

struct ClassProbability {
  std::string name;
  double probability = 0;
};

class ImageUse {
 public:
  virtual ~ImageUse() = default;
  // A file as evaluation sees it: [1, 3, size, size]. DataError, with its name, for what is no
  // image.
  virtual torch::Tensor read_image(const fs::path& file) const = 0;
  // For images [n, 3, size, size] the `most` most probable classes, most probable first.
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
  // fp32 [texts, labels], cut to what the network takes. DataError: not valid UTF-8.
  virtual torch::Tensor score(const std::vector<TextPair>& texts) const = 0;
  // The `most` most probable classes of each text, most probable first. Not of regression.
  virtual std::vector<std::vector<ClassProbability>> classify(const std::vector<TextPair>& texts,
                                                              int64_t most) const = 0;
};

}  // namespace lockstep
