#include "commands/models/classify.h"

#include <ATen/Parallel.h>
#include <torch/types.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"
#include "base/log.h"
#include "commands/models/classify_texts.h"
#include "commands/process/mirrored_run.h"
#include "commands/process/process_setup.h"
#include "tasks/uses.h"
#include "train/checkpoint/saved_run.h"

namespace lockstep {

namespace {

constexpr int64_t kImagesTogether = 32;  // images that go through the network at a time

struct ClassifyArguments {
  std::vector<std::string> words;
  SavedRunOptions run;
  std::string file;
  int64_t top = 5;
  bool json = false, pairs = false;
};

// Returns the files that are named, and all files below folders that are named, sorted by path,
// without hidden files and what lies in hidden folders.
std::vector<fs::path> files_of(const std::vector<std::string>& names) {
  std::vector<fs::path> out;
  for (const std::string& name : names) {
    if (!fs::exists(name)) throw DataError("{}: there is no such file", name);
    if (!fs::is_directory(name)) {
      out.emplace_back(name);
      continue;
    }
    std::vector<fs::path> inside;
    for (fs::recursive_directory_iterator at(name), end; at != end; ++at) {
      const bool hidden = at->path().filename().string().starts_with('.');
      if (hidden && at->is_directory()) at.disable_recursion_pending();
      if (!hidden && at->is_regular_file()) inside.push_back(at->path());
    }
    if (inside.empty()) throw DataError("{}: the folder has no files", name);
    std::sort(inside.begin(), inside.end());
    out.insert(out.end(), inside.begin(), inside.end());
  }
  return out;
}

// A decoded file, or why it cannot be decoded.
struct ReadImage {
  torch::Tensor image;
  std::string error;
};

std::vector<ReadImage> read_images(const ImageUse& model, std::span<const fs::path> files) {
  std::vector<ReadImage> out(files.size());
  at::parallel_for(0, std::ssize(files), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      try {
        out[i].image = model.read_image(files[i]);
      } catch (const Error& error) {
        out[i].error = fmt::format("{}: {}", files[i].string(), error.what());
      }
    }
  });
  return out;
}

void print_text(const fs::path& file, const std::vector<ClassProbability>& classes) {
  fmt::print("{}\n", file.string());
  for (const ClassProbability& c : classes) {
    fmt::print("  {:7.3f} %  {}\n", 100 * c.probability, c.name);
  }
}

void print_json(const fs::path& file, const std::vector<ClassProbability>& classes) {
  nlohmann::ordered_json line = {{"file", file.string()}, {"classes", nlohmann::json::array()}};
  for (const ClassProbability& c : classes) {
    line["classes"].push_back({{"name", c.name}, {"probability", c.probability}});
  }
  fmt::print("{}\n", line.dump());
}

// Prints what the files show; returns how many are not images.
int64_t classify_files(const ImageUse& model, std::span<const fs::path> files,
                       const ClassifyArguments& arguments) {
  int64_t broken = 0;
  std::vector<torch::Tensor> images;
  const std::vector<ReadImage> read = read_images(model, files);
  for (const ReadImage& r : read) {
    if (r.error.empty()) images.push_back(r.image);
  }
  std::vector<std::vector<ClassProbability>> found;
  if (!images.empty()) found = model.classify(torch::cat(images), arguments.top);
  for (std::size_t i = 0, next = 0; i < read.size(); ++i) {
    if (read[i].error.empty()) {
      (arguments.json ? print_json : print_text)(files[i], found[next++]);
      continue;
    }
    ++broken;
    log_warning("{}", read[i].error);
    if (arguments.json) {
      const nlohmann::ordered_json line = {{"file", files[i].string()}, {"error", read[i].error}};
      fmt::print("{}\n", line.dump());
    }
  }
  std::fflush(stdout);
  return broken;
}

// Prints what all the images show. Throws DataError when some files are not images.
void classify_images(const ImageUse& model, const ClassifyArguments& a) {
  const std::vector<fs::path> files = files_of(a.words);
  int64_t broken = 0;
  for (std::size_t begin = 0; begin < files.size(); begin += kImagesTogether) {
    const std::size_t count = std::min<std::size_t>(kImagesTogether, files.size() - begin);
    broken += classify_files(model, std::span(files).subspan(begin, count), a);
  }
  if (broken > 0) {
    throw DataError("{} of {} file{} cannot be decoded as an image", broken, files.size(),
                    files.size() == 1 ? "" : "s");
  }
}

}  // namespace

int classify(const Arguments& arguments) {
  ClassifyArguments a;
  CommandLine app("Prints the most probable classes of images or texts.", "lockstep classify");
  app.add_option(
      "words", a.words,
      "RUN, then files or folders of images, or texts, and key=value words. RUN may be a "
      "BERT of Hugging Face too: a folder, or hf:OWNER/NAME[@REVISION]");
  app.add_option("--checkpoint", a.run.checkpoint, kCheckpointHelp)->capture_default_str();
  app.add_option("--top", a.top, "classes to print of each image or text")
      ->positive()
      ->capture_default_str();
  app.add_option("--file", a.file, "texts, one a line; -: from standard input");
  app.add_flag("--pairs", a.pairs, "each text is a pair: a tabulator parts them");
  app.add_flag("--json", a.json, "an object a line");
  if (!app.parse(arguments)) return kExitOk;
  a.run.words = take_settings(a.words);
  if (a.words.size() < 2 && (a.words.empty() || a.file.empty())) {
    throw ConfigError("classify: expected a run and at least one image file or folder, or text");
  }
  const std::string name = a.words.front();
  a.words.erase(a.words.begin());

  prepare_process({});
  SavedRun run = open_saved_run(local_run(name, a.run), a.run);
  Task& task = *run.config.task;
  if (const TextUse* texts = task.classifying_texts()) {
    classify_texts(*texts, {a.words, a.file, a.pairs, a.top, a.json});
    return kExitOk;
  }
  const ImageUse* images = task.classifying_images();
  if (images == nullptr) {
    throw ConfigError("{}: its task is {}, not images or text", name, run.config.task_name);
  }
  if (a.pairs || !a.file.empty()) throw ConfigError("classify: --file and --pairs are for texts");
  classify_images(*images, a);
  return kExitOk;
}

}  // namespace lockstep
