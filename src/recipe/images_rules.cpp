#include "recipe/images_rules.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr double kImagesShare = 0.85;  // of the budget; the rest is for evaluation and start
constexpr int64_t kSmallSide = 40;     // up to this side, whole images are used, as for CIFAR-10

double images_seconds(const Budget& budget) { return kImagesShare * 60 * budget.minutes; }

double epochs_in(const ImagesFacts& facts, const ImageNetwork& network, const MachineFacts& machine,
                 const Budget& budget) {
  return images_seconds(budget) * images_speed(network, machine) / static_cast<double>(facts.train);
}

bool seen_whole(const ImagesFacts& facts, int64_t size) {
  return facts.one_size && size == facts.shorter_side && size <= kSmallSide;
}

std::string epochs_text(double epochs) {
  return epochs < 10 ? fmt::format("{:.1f}", epochs) : fmt::format("{:.0f}", epochs);
}

// The image sides to try, in this order.
constexpr std::array<int64_t, 6> kSides = {224, 160, 128, 96, 64, 48};
constexpr int64_t kSideWanted = 128;  // a whole network that could not see so much is halved
constexpr double kEpochsWanted = 15;  // FFCV uses 16, tiny ImageNet 20
constexpr double kEpochsOfSmall = 35, kEpochsOfLarge = 18;  // of 50,000 images

NetworkChoice choose_small(const ImagesFacts& facts, const MachineFacts& machine,
                           const Budget& budget) {
  const ImageNetwork cifar{"resnet18", "cifar", facts.shorter_side};
  const std::string side = fmt::format("{0} x {0} pixels", facts.shorter_side);
  if (facts.shorter_side <= kSmallSide) {
    const double epochs = epochs_in(facts, cifar, machine, budget);
    ImageNetwork half = cifar;
    half.width /= 2;
    const bool full = epochs >= static_cast<double>(most_epochs(facts));
    const std::string why = fmt::format(
        "{} are too few for ImageNet's stem, which keeps 1 in 16 of them: ResNet-18 with a 3 x 3 "
        "stem, {}. On CIFAR-10 half the width made 89.7 % in 60 minutes of 2 cores, all of it "
        "89.3 % in 73 (benchmarks/notes/2026-11-cifar10.md); a ViT was far behind in equal time "
        "(benchmarks/notes/2026-11-vit-cifar10.md)",
        side, full ? "for whose whole width there is time" : "half as wide as the paper's");
    return {full ? cifar : half, why};
  }
  if (epochs_in(facts, cifar, machine, budget) >= kEpochsWanted) {
    return {cifar, fmt::format("{} and time for {} epochs: the 3 x 3 stem "
                               "(configs/images/resnet18-tiny.toml)",
                               side, epochs_text(epochs_in(facts, cifar, machine, budget)))};
  }
  return {{"resnet18", "imagenet", facts.shorter_side},
          fmt::format("{}: the 3 x 3 stem of configs/images/resnet18-tiny.toml would see the "
                      "images {} times in {:g} minutes; ImageNet's stem takes a quarter of the "
                      "time or less (56 % of 30 classes in 20 epochs, "
                      "benchmarks/notes/2026-11-tiny-imagenet.md)",
                      side, epochs_text(epochs_in(facts, cifar, machine, budget)), budget.minutes)};
}

// Returns the network for the largest side that there is time to see kEpochsWanted times, else for
// the smallest one.
ImageNetwork largest_side(const ImagesFacts& facts, const MachineFacts& machine,
                          const Budget& budget, int64_t width) {
  ImageNetwork network{"resnet18", "cifar", 32, width};  // for still smaller images
  for (int64_t side : kSides) {
    if (side > facts.shorter_side) continue;
    network = {"resnet18", "imagenet", side, width};
    if (epochs_in(facts, network, machine, budget) >= kEpochsWanted) break;
  }
  return network;
}

}  // namespace

int64_t most_epochs(const ImagesFacts& facts) {
  // A smaller set needs more, by the root of its size.
  const double of_many = facts.shorter_side <= kSmallSide ? kEpochsOfSmall : kEpochsOfLarge;
  const double epochs = of_many * std::sqrt(50'000.0 / static_cast<double>(facts.train));
  return std::clamp<int64_t>(std::llround(epochs), 16, 90);
}

NetworkChoice choose_network(const ImagesFacts& facts, const MachineFacts& machine,
                             const Budget& budget) {
  if (facts.one_size && facts.shorter_side >= 16 && facts.shorter_side <= 72) {
    return choose_small(facts, machine, budget);
  }
  const ImageNetwork large{"resnet50", "imagenet", 224};
  constexpr int64_t kManyImages = 200'000;
  if (facts.train >= kManyImages && facts.shorter_side >= 200 &&
      epochs_in(facts, large, machine, budget) >= 16) {
    return {large, fmt::format("{} images and time for {} epochs: ResNet-50 at 224 pixels, as "
                               "configs/images/resnet50-imagenet.toml",
                               with_commas(facts.train),
                               epochs_text(epochs_in(facts, large, machine, budget)))};
  }
  ImageNetwork network = largest_side(facts, machine, budget, 64);
  const auto possible = std::find_if(kSides.begin(), kSides.end(),
                                     [&](int64_t side) { return side <= facts.shorter_side; });
  const bool seen_large =
      possible == kSides.end() || network.size >= std::min(kSideWanted, *possible);
  if (!seen_large || epochs_in(facts, network, machine, budget) < kEpochsWanted) {
    network = largest_side(facts, machine, budget, 32);
  }
  const double epochs = epochs_in(facts, network, machine, budget);
  const std::string why = facts.train < kManyImages
                              ? "a larger network learns so few by heart"
                              : fmt::format("ResNet-50 at 224 pixels would see them {} times",
                                            epochs_text(epochs_in(facts, large, machine, budget)));
  return {
      network,
      fmt::format("{} images: ResNet-18{}, for {}. {} pixels of a side is {}: {:g} minutes show "
                  "them {} times (wanted: {:g}, as in the recipes of configs/images)",
                  with_commas(facts.train),
                  network.width == 64 ? ""
                                      : " half as wide as the paper's, which sees larger images "
                                        "in the time (benchmarks/notes/"
                                        "2026-11-new-configurations.md)",
                  why, network.size,
                  epochs < kEpochsWanted ? "the least that is tried" : "what the time allows",
                  budget.minutes, epochs_text(epochs), kEpochsWanted)};
}

ImagesLength choose_images_length(const ImagesFacts& facts, const ImageNetwork& network,
                                  const MachineFacts& machine, const Budget& budget) {
  ImagesLength out;
  const double epochs =
      std::min(epochs_in(facts, network, machine, budget), static_cast<double>(most_epochs(facts)));
  out.batch = facts.train >= 20'000 ? 256 : facts.train >= 5'000 ? 128 : 64;
  const double images = epochs * static_cast<double>(facts.train);
  // A run of few steps learns more with smaller batches.
  while (out.batch > 32 && images / static_cast<double>(out.batch) < 300) out.batch /= 2;
  out.batch = std::min(out.batch, std::max<int64_t>(2, facts.train / 2));
  if (epochs >= 3) {
    out.epochs = static_cast<int64_t>(epochs);
    out.steps = out.epochs * std::max<int64_t>(1, facts.train / out.batch);
  } else {
    out.steps = std::max<int64_t>(20, std::llround(images / static_cast<double>(out.batch)));
  }
  out.seconds = static_cast<double>(out.steps * out.batch) / images_speed(network, machine);
  return out;
}

bool may_be_mirrored(const ImagesFacts& facts) {
  const bool signs = std::all_of(facts.classes.begin(), facts.classes.end(), [](const auto& name) {
    return name.size() == 1 && std::isalnum(static_cast<unsigned char>(name[0])) != 0;
  });
  return !signs;
}

int64_t choose_kept_side(const ImagesFacts& facts, const ImageNetwork& network) {
  // This leaves a margin: crops of a third of an image or more are then shrunk a little, never
  // enlarged.
  return 2 * facts.shorter_side > 5 * network.size ? network.size * 7 / 4 : 0;
}

namespace {

void set_images(const ImagesFacts& facts, const ImageNetwork& network, const ImagesLength& length,
                const RunNames& names, Recipe& recipe) {
  recipe.set("images.data", names.data);
  recipe.set("images.size", network.size,
             fmt::format("The shorter side of the images is {} pixels in the middle.",
                         facts.shorter_side));
  if (seen_whole(facts, network.size)) {
    recipe.set("images.eval_resize", network.size);
    recipe.set("images.augmentation", "random_crop",
               "All images have this size: whole ones, shifted by up to an eighth of a side.");
    recipe.set("images.padding", std::max<int64_t>(1, network.size / 8));
    constexpr int64_t kLong = 20;
    if (length.epochs >= kLong) {
      recipe.set("images.erasing", 0.25, "As configs/images/cifar10-resnet18.toml: a long run.");
    }
  } else {
    recipe.set("images.eval_resize", facts.one_size && network.size == facts.shorter_side
                                         ? network.size
                                         : network.size * 256 / 224);
    recipe.set("images.crop_area", facts.train < 100'000 ? 0.35 : 0.08,
               facts.train < 100'000
                   ? "Crops of a third of an image or more, as configs/images/resnet18-tiny.toml: "
                     "0.08, ImageNet's, asks for more epochs."
                   : "As torchvision for ImageNet.");
  }
  if (!may_be_mirrored(facts)) {
    recipe.set("images.flip", 0.0,
               "The classes are named as single letters or digits: in the mirror they are others.");
  }
  std::vector<double> mean, deviation;
  for (std::size_t i = 0; i < 3; ++i) {
    mean.push_back(std::round(1000 * facts.mean[i]) / 1000);
    deviation.push_back(std::max(0.01, std::round(1000 * facts.deviation[i]) / 1000));
  }
  recipe.set("images.mean", mean, fmt::format("Of {} of the images.", facts.sampled));
  recipe.set("images.std", deviation);
}

std::string length_text(const ImagesFacts& facts, const ImageNetwork& network,
                        const ImagesLength& length, const MachineFacts& machine,
                        const Budget& budget) {
  const double epochs =
      static_cast<double>(length.steps * length.batch) / static_cast<double>(facts.train);
  std::string out =
      length.epochs >= most_epochs(facts)
          ? fmt::format("{} epochs, the most that help {} images ({}), ", length.epochs,
                        with_commas(facts.train),
                        facts.shorter_side <= kSmallSide ? "35 of CIFAR-10's 50,000 made 89.7 %"
                                                         : "FFCV's recipe has 16 of ImageNet's")
          : fmt::format("{} epochs, what fits into {:g} minutes, ", epochs_text(epochs),
                        budget.minutes);
  if (machine.gpus > 0) {
    return out +
           fmt::format("about {} by estimate: no GPU was measured for it; lockstep plan does.",
                       short_duration(length.seconds));
  }
  return out + fmt::format(
                   "about {} at {:.3g} images/s: an estimate from what 2 cores of an AMD EPYC made "
                   "of {} pixels (benchmarks/notes); {}. lockstep plan measures.",
                   short_duration(length.seconds), images_speed(network, machine),
                   network.name == "resnet50" ? "224"
                   : network.stem == "cifar"  ? "32"
                                              : "64",
                   compared_to_yardstick(machine));
}

void set_image_training(const ImagesFacts& facts, const ImageNetwork& network,
                        const ImagesLength& length, const std::string& why, Recipe& recipe) {
  const bool small = network.size <= kSmallSide;
  recipe.set("optimizer.name", "sgd");
  const double lr = small ? 0.2 : 0.3;  // of 256 images
  recipe.set("optimizer.lr", lr * static_cast<double>(length.batch) / 256,
             fmt::format("{} for 256 images a step{}, in proportion (Goyal et al. 2017).", lr,
                         small ? " (configs/images/cifar10-resnet18.toml)" : ""));
  recipe.set("optimizer.momentum", 0.9);
  recipe.set("optimizer.nesterov", true);
  recipe.set("optimizer.weight_decay", 5e-4);
  recipe.set("schedule.name", "one_cycle",
             "Up to the peak in the first 30 % of the steps, then down to nothing.");
  if (length.epochs > 0) {
    recipe.set("training.epochs", length.epochs, why);
  } else {
    recipe.set("training.steps", length.steps, why);
  }
  recipe.set("training.clip_norm", 0.0, "As the recipes in configs/images.");
  if (!small) recipe.set("training.decay_vectors", false);
  const int64_t an_epoch = std::max<int64_t>(1, facts.train / length.batch);
  recipe.set("training.progress_every", std::clamp<int64_t>(an_epoch / 5, 1, 50));
  if (facts.prepared && facts.val == 0) {
    recipe.set("evaluation.every", 0, "The images were prepared without a val split.");
  } else if (length.epochs > 0) {
    recipe.set("evaluation.every_epochs", std::max<int64_t>(1, length.epochs / 12));
  } else {
    recipe.set("evaluation.every", std::max<int64_t>(1, length.steps / 3));
  }
  recipe.set("checkpoint.every", std::max<int64_t>(1, length.steps / 5));
}

}  // namespace

Recipe images_recipe(const ImagesFacts& facts, const MachineFacts& machine, const Budget& budget,
                     const RunNames& names) {
  const NetworkChoice choice = choose_network(facts, machine, budget);
  const ImageNetwork& network = choice.network;
  const ImagesLength length = choose_images_length(facts, network, machine, budget);
  Recipe recipe;
  recipe.set("run.folder", names.run);
  recipe.set("task.name", "images");
  set_images(facts, network, length, names, recipe);
  recipe.set("model.name", network.name, choice.why + ".");
  if (network.stem != "imagenet") recipe.set("model.stem", network.stem);
  if (network.width != 64) recipe.set("model.width", network.width);
  if (may_be_mirrored(facts)) {
    recipe.set("model.average_flips", true,
               "Evaluates an image and its mirror image: 89.7 to 90.5 % on CIFAR-10 "
               "(benchmarks/notes/2026-11-cifar10.md).");
  }
  recipe.set("loss.label_smoothing", 0.1, "Szegedy et al. 2016, section 7.");
  recipe.set("batch.images", length.batch,
             fmt::format("Of a step, all ranks together: {} steps an epoch.",
                         with_commas(std::max<int64_t>(1, facts.train / length.batch))));
  if (facts.train >= 4 * length.batch) recipe.set("batch.drop_last", true);
  set_image_training(facts, network, length, length_text(facts, network, length, machine, budget),
                     recipe);
  const double needed = images_bytes(network, length.batch);
  if (2 * needed > static_cast<double>(machine.available_bytes) && machine.gpus == 0) {
    recipe.set("training.fit_memory", true,
               fmt::format("A step could need {}, and {} are free: computed in parts, of which "
                           "batch norms see each by itself.",
                           short_bytes(needed),
                           short_bytes(static_cast<double>(machine.available_bytes))));
  }
  return recipe;
}

std::vector<std::string> images_commands(const ImagesFacts& facts, const ImageNetwork& network,
                                         const ImagesInput& input, const RunNames& names) {
  std::vector<std::string> out;
  if (!facts.prepared) {
    std::vector<std::string> words{"lockstep", "prepare", "images", input.input.string()};
    const int64_t kept = choose_kept_side(facts, network);
    if (kept > 0) words.insert(words.end(), {"--resize", std::to_string(kept)});
    if (facts.val == 0) words.insert(words.end(), {"--hold-out", "0.1"});
    if (!input.flat_labels.empty()) {
      words.insert(words.end(), {"--labels", input.flat_labels.string()});
    }
    if (input.classes_by_name) words.push_back("--classes-by-name");
    if (!input.label.empty()) words.insert(words.end(), {"--label", input.label});
    words.insert(words.end(), {"--out", names.data});
    out.push_back(command_line(words));
  }
  out.push_back("lockstep launch -n auto -- train " + command_line({names.config}));
  out.push_back(command_line({"lockstep", "evaluate", names.run, "--by-class"}));
  if (facts.prepared) {
    out.push_back(command_line({"lockstep", "classify", names.run}) + " photo.jpeg");
  }
  return out;
}

}  // namespace lockstep
