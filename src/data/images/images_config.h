// The section [images] of a configuration: the location of the images and how they are processed.
// The augmentations are torchvision's (references/classification), with its names and defaults.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/fields.h"

namespace lockstep {

struct ImagesConfig {
  std::string data;
  std::string train_split = "train";
  std::string positive;
  int64_t size = 224;         // side in pixels in training and evaluation
  int64_t eval_resize = 256;  // 0: evaluation crops without resizing
  std::string interpolation = "bilinear";

  std::string augmentation = "random_resized_crop";
  double crop_area = 0.08;        // smallest share of the area; the largest is 1
  double crop_ratio = 4.0 / 3.0;  // width / height is from 1 / crop_ratio to crop_ratio
  int64_t padding = 4;            // for random_crop
  double flip = 0.5;
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;
  int64_t randaugment_operations = 0;
  int64_t randaugment_magnitude = 9;  // of 0 to 30
  double erasing = 0;
  double mixup = 0, cutmix = 0;  // alpha of the beta distribution; 0: off

  std::vector<double> mean, std;  // empty: as pixel_mean() and pixel_deviation() say
  std::string broken = "fail";
  bool exact_decoding = false;
  int64_t workers = 0;

  // Where hosts have different shards (batches/shared_images.h).
  std::string share = "all";
  std::string cache;
  int64_t cache_bytes = 0;

  void describe(Fields& f) {
    f("data", &data, InputPath{}, "folder with train/CLASS/FILE, or of `lockstep prepare images`");
    f("train_split", &train_split, Any{}, "name of the split to train on");
    f("positive", &positive, Any{},
      "of two classes the one that precision, recall and f1 are of; empty: the second");
    f("size", &size, AtLeast{8}, "pixels of a side that the network sees");
    f("eval_resize", &eval_resize, AtLeast{0},
      "shorter side before the centre crop of `size`; 0: not resized");
    f("interpolation", &interpolation, OneOf{{"bilinear", "bicubic"}}, "antialiased, as Pillow's");
    f("augmentation", &augmentation, OneOf{{"random_resized_crop", "random_crop", "none"}},
      "how a training image is cut; none: as in evaluation");
    f("crop_area", &crop_area, Between{0.0001, 1.0001},
      "random_resized_crop: smallest share of the area");
    f("crop_ratio", &crop_ratio, AtLeast{1}, "random_resized_crop: largest width to height");
    f("padding", &padding, AtLeast{0}, "random_crop: black pixels around the image");
    f("flip", &flip, Between{0, 1.0001}, "probability of mirroring");
    f("brightness", &brightness, AtLeast{0}, "colour jitter: factor from 1 - b to 1 + b");
    f("contrast", &contrast, AtLeast{0}, "colour jitter: factor from 1 - c to 1 + c");
    f("saturation", &saturation, AtLeast{0}, "colour jitter: factor from 1 - s to 1 + s");
    f("hue", &hue, Between{0, 0.5001}, "colour jitter: shift by up to this share of the circle");
    f("randaugment_operations", &randaugment_operations, AtLeast{0},
      "RandAugment's N (Cubuk et al. 2020); 0: off");
    f("randaugment_magnitude", &randaugment_magnitude, Between{0, 31}, "RandAugment's M, 0 to 30");
    f("erasing", &erasing, Between{0, 1.0001}, "probability of random erasing (Zhong et al. 2017)");
    f("mixup", &mixup, AtLeast{0}, "alpha of mixup (Zhang et al. 2018); 0: off");
    f("cutmix", &cutmix, AtLeast{0}, "alpha of CutMix (Yun et al. 2019); 0: off");
    f("mean", &mean, Any{},
      "of red, green and blue, taken off the pixels (0 to 1); empty: as model.source has it, else "
      "0.485, 0.456, 0.406 (ImageNet's)");
    f("std", &std, Any{},
      "of red, green and blue, the pixels are divided by; empty: as model.source has it, else "
      "0.229, 0.224, 0.225");
    f("broken", &broken, OneOf{{"fail", "skip"}},
      "an image that cannot be decoded: ends the run, or is left out and counted");
    f("exact_decoding", &exact_decoding, Any{},
      "training decodes in full size where a crop is shrunk to half or less");
    f("workers", &workers, AtLeast{0}, "threads of a rank that decode; 0: as the rank's threads");
    f("share", &share, OneOf{{"all", "machine"}},
      "each machine draws from all images, and fetches those that only others have; machine: it "
      "draws from its own shards");
    f("cache", &cache, Any{},
      "folder for images that other machines send; empty: .fetched in images.data");
    f("cache_bytes", &cache_bytes, AtLeast{0},
      "most bytes of these that are kept of each split; 0: all");
  }
};

// Return images.mean and images.std, or ImageNet's where they are empty.
const std::vector<double>& pixel_mean(const ImagesConfig& config);
const std::vector<double>& pixel_deviation(const ImagesConfig& config);

// Checks what the rules of single keys cannot express. Throws ConfigError.
void check_images_config(const ImagesConfig& config);

}  // namespace lockstep
