// Makes folders of small JPEGs that a network can classify in seconds: the class is in the colours
// of two halves, the rest is noise.
#pragma once

#include <gtest/gtest.h>
#include <stdio.h>

#include <jpeglib.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/random.h"
#include "support/program.h"

namespace lockstep {

struct PixelSize {
  int width = 24, height = 20;
};

// Encodes RGB rows as a JPEG file.
inline void write_jpeg(const fs::path& file, const std::vector<unsigned char>& pixels,
                       PixelSize size) {
  FILE* out = std::fopen(file.c_str(), "wb");
  ASSERT_NE(out, nullptr) << file;
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  jpeg_stdio_dest(&jpeg, out);
  jpeg.image_width = static_cast<JDIMENSION>(size.width);
  jpeg.image_height = static_cast<JDIMENSION>(size.height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 90, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    auto row = const_cast<JSAMPLE*>(pixels.data()) +
               static_cast<std::size_t>(jpeg.next_scanline) * size.width * 3;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::fclose(out);
}

// Writes an image of class `label` (of at most 6) with noise from `key`.
inline void write_class_image(const fs::path& file, int label, uint64_t key, PixelSize size = {}) {
  const std::array<std::array<int, 3>, 6> colors = {{{220, 60, 50},
                                                     {60, 200, 70},
                                                     {50, 80, 220},
                                                     {220, 210, 60},
                                                     {200, 60, 210},
                                                     {60, 210, 210}}};
  std::vector<unsigned char> pixels;
  uint64_t counter = 0;
  for (int y = 0; y < size.height; ++y) {
    for (int x = 0; x < size.width; ++x) {
      const auto& color = colors[static_cast<std::size_t>(y * 2 < size.height ? label : 5 - label)];
      for (int channel : color) {
        const auto noise = static_cast<int>(random_below(key, counter++, 60)) - 30;
        pixels.push_back(static_cast<unsigned char>(std::clamp(channel + noise, 0, 255)));
      }
    }
  }
  write_jpeg(file, pixels, size);
}

struct TinyImageCounts {
  int classes = 4, train = 10, val = 3;  // images per class
  PixelSize size = {};
};

// Writes DATA/train/CLASS/N.jpeg and DATA/val/CLASS/N.jpeg; classes are c0, c1, ...
inline void write_tiny_images(const fs::path& data, TinyImageCounts counts = {}) {
  for (const char* split : {"train", "val"}) {
    const bool train = std::string(split) == "train";
    for (int c = 0; c < counts.classes; ++c) {
      const fs::path folder = data / split / fmt::format("c{}", c);
      fs::create_directories(folder);
      for (int i = 0; i < (train ? counts.train : counts.val); ++i) {
        write_class_image(
            folder / fmt::format("{:03}.jpeg", i), c,
            combine_keys(train ? 1 : 2, 100 * static_cast<uint64_t>(c) + static_cast<uint64_t>(i)),
            counts.size);
      }
    }
  }
}

// Writes a configuration that trains on DATA in a moment: 40 images in steps of 12.
inline void write_tiny_image_config(const fs::path& file, const fs::path& data) {
  write_file(file, fmt::format("[run]\nprecision = \"fp32\"\ndevice = \"cpu\"\n"
                               "[task]\nname = \"images\"\n"
                               "[images]\ndata = \"{}\"\nsize = 16\neval_resize = 18\n"
                               "crop_area = 0.5\n"
                               "[model]\nname = \"resnet18\"\nstem = \"cifar\"\n"
                               "[batch]\nimages = 12\nevaluation_images = 5\n"
                               "[optimizer]\nname = \"sgd\"\nlr = 0.02\nweight_decay = 1e-4\n"
                               "[schedule]\nname = \"constant\"\nwarmup_steps = 2\n"
                               "[training]\nsteps = 8\nclip_norm = 0\nprogress_every = 2\n"
                               "[evaluation]\nevery = 0\n[checkpoint]\nevery = 0\n",
                               data.string()));
}

class TinyImageRuns : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder();
    write_tiny_images(data());
    write_tiny_image_config(folder_->path() / "tiny.toml", data());
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  static fs::path data() { return folder_->path() / "data"; }
  fs::path run(const std::string& name) const { return folder_->path() / name; }

  // Trains into run(name) with `ranks` ranks of one thread each.
  ProgramResult train(const std::string& name, int ranks, const std::string& words = "") const {
    std::string train = fmt::format("train {}/tiny.toml run.folder={} {}", folder_->path().string(),
                                    run(name).string(), words);
    if (ranks > 1) train = fmt::format("launch -n {} -- {}", ranks, train);
    return run_lockstep(train, "OMP_NUM_THREADS=1");
  }

  inline static TemporaryFolder* folder_ = nullptr;
};

}  // namespace lockstep
