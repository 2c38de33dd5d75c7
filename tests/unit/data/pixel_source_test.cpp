#include "data/images/pixel_source.h"

#include <gtest/gtest.h>

#include <map>
#include <span>

#include "data/images/image_decoder.h"
#include "data/images/image_set.h"
#include "data/images/prepare_images.h"
#include "support/debian_mirror.h"
#include "support/expect_error.h"
#include "support/image_files.h"
#include "support/pixel_files.h"

namespace lockstep {
namespace {

using testing::archive_of;
using testing::cifar_names;
using testing::cifar_pickle;
using testing::cifar_pixels;
using testing::Files;
using testing::gz_of;
using testing::idx_file;
using testing::npy_file;
using namespace std::string_literals;

class PixelSources : public ::testing::Test {
 protected:
  fs::path path(const std::string& name) const { return folder_.path() / name; }
  void write(const std::string& name, const std::string& content) const {
    fs::create_directories(path(name).parent_path());
    write_file(path(name), content);
  }
  void write_mnist(const std::string& folder, bool compressed = false) const {
    const std::string images = idx_file({3, 2, 2}, "\1\2\3\4\5\6\7\10\11\12\13\14");
    const std::string end = compressed ? ".gz" : "";
    const auto packed = [&](const std::string& text) { return compressed ? gz_of(text) : text; };
    write(folder + "train-images-idx3-ubyte" + end, packed(images));
    write(folder + "train-labels-idx1-ubyte" + end, packed(idx_file({3}, "\7\0\7"s)));
    write(folder + "t10k-images-idx3-ubyte" + end, packed(idx_file({1, 2, 2}, "\2\2\2\2")));
    write(folder + "t10k-labels-idx1-ubyte" + end, packed(idx_file({1}, "\7")));
  }
  // Returns SPLIT/CLASS/FILE of all images, and the value of the first pixel of each channel.
  std::map<std::string, std::vector<int>> read(const fs::path& input,
                                               const std::string& label = "") const {
    std::map<std::string, std::vector<int>> out;
    const std::unique_ptr<ImageSource> source = open_pixel_source(input, label);
    if (!source) return out;
    ImageDecoder decoder;
    while (std::optional<SourceImage> image = source->next()) {
      const std::string name = image->name();
      const std::vector<std::byte> file = std::move(*image).take_content();
      const ImageInfo info = decoder.open(file);
      const uint8_t* pixels = decoder.decode({0, 0, info.width, info.height}).pixels;
      out[name] = {pixels[0], pixels[1], pixels[2]};
    }
    return out;
  }

  TemporaryFolder folder_;
};

using Images = std::map<std::string, std::vector<int>>;

const Images kMnist = {{"train/7/train-000001.png", {1, 1, 1}},
                       {"train/0/train-000002.png", {5, 5, 5}},
                       {"train/7/train-000003.png", {9, 9, 9}},
                       {"test/7/test-000001.png", {2, 2, 2}}};

TEST_F(PixelSources, ReadMnistWhereItLies) {
  write_mnist("plain/");
  write_mnist("torchvision/MNIST/raw/", true);
  write_mnist("torchvision/MNIST/raw/");  // torchvision leaves both there
  EXPECT_EQ(read(path("plain")), kMnist);
  EXPECT_EQ(read(path("torchvision")), kMnist);
  // A copy with points in the names, once more in folders of the files' own names.
  write("copy/train-images.idx3-ubyte", read_file(path("plain/train-images-idx3-ubyte")));
  write("copy/train-labels.idx1-ubyte", read_file(path("plain/train-labels-idx1-ubyte")));
  for (const std::string name : {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                 "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    write("copy/" + name + "/" + name, read_file(path("plain/" + name)));
  }
  EXPECT_EQ(read(path("copy")), kMnist);
}

const Images kCifar = {{"train/cat/train-000001.png", {1, 2, 3}},
                       {"train/dog/train-000002.png", {4, 5, 6}},
                       {"train/cat/train-000003.png", {7, 8, 9}},
                       {"test/dog/test-000001.png", {4, 5, 6}}};

TEST_F(PixelSources, ReadCifarFromItsArchives) {
  const std::string one = cifar_pixels(1, 2, 3), two = cifar_pixels(4, 5, 6),
                    three = cifar_pixels(7, 8, 9);
  const Files python = {{"cifar-10-batches-py/batches.meta", cifar_names({"cat", "dog"})},
                        {"cifar-10-batches-py/data_batch_1", cifar_pickle({0, 1}, one + two)},
                        {"cifar-10-batches-py/data_batch_2", cifar_pickle({0}, three)},
                        {"cifar-10-batches-py/readme.html", "<html>"},
                        {"cifar-10-batches-py/test_batch", cifar_pickle({1}, two)}};
  write("cifar-10-python.tar.gz",
        archive_of(python, archive_write_set_format_gnutar, archive_write_add_filter_gzip));
  EXPECT_EQ(read(path("cifar-10-python.tar.gz")), kCifar);
  const Files binary = {{"b/batches.meta.txt", "cat\ndog\n\n"},
                        {"b/data_batch_1.bin", "\0"s + one + "\1" + two},
                        {"b/data_batch_2.bin", "\0"s + three},
                        {"b/test_batch.bin", "\1" + two}};
  write("cifar-10-binary.zip", archive_of(binary, archive_write_set_format_zip));
  EXPECT_EQ(read(path("cifar-10-binary.zip")), kCifar);
  const Files hundred = {{"c/meta", cifar_names({"cat", "dog"}, "fine_label_names")},
                         {"c/file.txt~", ""},
                         {"c/test", cifar_pickle({1}, two, "fine_labels")},
                         {"c/train", cifar_pickle({0, 1, 0}, one + two + three, "fine_labels")}};
  for (const auto& [name, content] : hundred) write(name, content);
  EXPECT_EQ(read(path("c")), kCifar);
  const Files hundred_binary = {{"d/fine_label_names.txt", "cat\ndog\n"},
                                {"d/coarse_label_names.txt", "animal\n"},
                                {"d/train.bin", "\0\0"s + one + "\0\1"s + two + "\0\0"s + three},
                                {"d/test.bin", "\0\1"s + two}};
  write("d.tar", archive_of(hundred_binary, archive_write_set_format_gnutar));
  EXPECT_EQ(read(path("d.tar")), kCifar);
  // Names alone make no set.
  write("e/train", "some text");
  write("e/train.bin", "some bytes");
  EXPECT_EQ(open_pixel_source(path("e"), ""), nullptr);
}

TEST_F(PixelSources, ReadKagglesTables) {
  std::string row = "0";
  for (int i = 1; i < 64; ++i) row += "," + std::to_string(i);
  std::string head;
  for (int i = 0; i < 64; ++i) head += ",pixel" + std::to_string(i);
  const Files digits = {
      {"sample_submission.csv", "ImageId,Label\n1,0\n"},
      {"test.csv", head.substr(1) + "\n" + row + "\n"},
      {"train.csv", "label" + head + "\n3," + row + "\n12,9" + row.substr(1) + "\n"}};
  write("digit-recognizer.zip", archive_of(digits, archive_write_set_format_zip));
  // Numbers get equal lengths, so that they sort; test has no labels.
  const Images expected = {{"train/03/train-000001.png", {0, 0, 0}},
                           {"train/12/train-000002.png", {9, 9, 9}}};
  EXPECT_EQ(read(path("digit-recognizer.zip")), expected);
  for (const auto& [name, content] : digits) write("unpacked/" + name, content);
  write("unpacked/train/train.csv", digits.at("train.csv"));  // as some are given twice
  EXPECT_EQ(read(path("unpacked")), expected);
  EXPECT_EQ(read(path("unpacked/train.csv")), expected);
  EXPECT_EQ(open_pixel_source(path("unpacked/sample_submission.csv"), ""), nullptr);
}

// As Keras' mnist.npz and MedMNIST's are.
TEST_F(PixelSources, ReadNumPysArrays) {
  const std::string two = "\1\2\3\4\5\6";
  write("mnist.npz", archive_of({{"x_test.npy", npy_file("|u1", "(1, 1, 3)", "\7\7\7")},
                                 {"x_train.npy", npy_file("|u1", "(2, 1, 3)", two)},
                                 {"y_test.npy", npy_file("|u1", "(1,)", "\1")},
                                 {"y_train.npy", npy_file("|u1", "(2,)", "\0\1"s)}},
                                archive_write_set_format_zip));
  EXPECT_EQ(read(path("mnist.npz")), (Images{{"train/0/train-000001.png", {1, 1, 1}},
                                             {"train/1/train-000002.png", {4, 4, 4}},
                                             {"test/1/test-000001.png", {7, 7, 7}}}));
  write("med/train_images.npy", npy_file("|u1", "(2, 1, 1, 3)", two));
  write("med/train_labels.npy", npy_file("<i8", "(2, 1)", "\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0"s));
  write("med/val_images.npy", npy_file("|u1", "(1, 1, 1, 3)", "\7\10\11"));
  EXPECT_ERROR(read(path("med")), DataError, "no y_val.npy or val_labels.npy beside it");
  write("med/val_labels.npy", npy_file("|u1", "(1, 1)", "\1"));
  EXPECT_EQ(read(path("med")), (Images{{"train/2/train-000001.png", {1, 2, 3}},
                                       {"train/1/train-000002.png", {4, 5, 6}},
                                       {"val/1/val-000001.png", {7, 8, 9}}}));
}

TEST_F(PixelSources, LeavePicturesToOthers) {
  write_tree(path("tree"));
  EXPECT_EQ(open_pixel_source(path("tree"), ""), nullptr);
  const std::vector<std::byte> file = jpeg_file(20, 20, 1);
  // A picture of what is there, as Kaggle's sets have them, changes nothing; many do.
  write_mnist("shown/");
  write_bytes(path("shown/sample.jpg"), file);
  EXPECT_EQ(read(path("shown")), kMnist);
  for (int i = 0; i < 20; ++i) write_bytes(path(fmt::format("shown/{}.jpg", i)), file);
  EXPECT_EQ(open_pixel_source(path("shown"), ""), nullptr);
  const std::string picture(reinterpret_cast<const char*>(file.data()), file.size());
  write("pictures.tar",
        archive_of({{"a/1.jpg", picture}, {"b/1.jpg", picture}}, archive_write_set_format_gnutar));
  EXPECT_EQ(open_pixel_source(path("pictures.tar"), ""), nullptr);
}

TEST_F(PixelSources, SayWhatIsWrong) {
  write_mnist("a/");
  write_mnist("b/");
  EXPECT_ERROR(open_pixel_source(folder_.path(), ""), DataError, "holds 2 sets of images");
  fs::remove(path("a/train-labels-idx1-ubyte"));
  EXPECT_ERROR(open_pixel_source(path("a"), ""), DataError, "no train-labels-idx1-ubyte beside it");
  write("a/train-labels-idx1-ubyte", idx_file({2}, "\1\2"));
  EXPECT_ERROR(open_pixel_source(path("a"), ""), DataError,
               "2 labels, but train-images-idx3-ubyte has 3 images");
  write("b/emnist-train-images-idx3-ubyte", read_file(path("b/train-images-idx3-ubyte")));
  EXPECT_ERROR(open_pixel_source(path("b"), ""), DataError,
               "more than one set of images for train");
  EXPECT_ERROR(open_pixel_source(path("b/train-images-idx3-ubyte"), ""), DataError,
               "one file of a set of several");
  write("d/train-images-idx3-ubyte", idx_file({2, 0, 7}, ""));
  write("d/train-labels-idx1-ubyte", idx_file({2}, "\1\2"));
  EXPECT_ERROR(open_pixel_source(path("d"), ""), DataError, "its images have 0 x 7 pixels");
  write("c/data_batch_1", cifar_pickle({5}, cifar_pixels(1, 2, 3)));
  write("c/batches.meta", cifar_names({"cat", "dog"}));
  EXPECT_ERROR(read(path("c")), DataError, "train image 1: label 5 of 2 classes");
}

TEST_F(PixelSources, BecomeShards) {
  write_mnist("mnist/", true);
  const ImagesManifest manifest =
      prepare_images({.input = path("mnist"), .out = path("shards"), .threads = 2});
  EXPECT_EQ(manifest.classes, (std::vector<std::string>{"0", "7"}));
  const std::unique_ptr<ImageSet> train = open_image_set(path("shards"), "train");
  ASSERT_EQ(train->size(), 3);
  std::vector<std::byte> space;
  ImageDecoder decoder;
  EXPECT_EQ(decoder.open(train->bytes(2, space)).channels, 1);
  const DecodedPixels pixels = decoder.decode({0, 0, 2, 2});
  EXPECT_EQ(pixels.pixels[0], 9);
  EXPECT_EQ(pixels.pixels[pixels.stride + 4], 12);
}

}  // namespace
}  // namespace lockstep
