#include "formats/pixel_arrays.h"

#include <gtest/gtest.h>

#include <numeric>

#include "support/expect_error.h"
#include "support/pixel_files.h"

namespace lockstep {
namespace {

using testing::cifar_names;
using testing::cifar_pickle;
using testing::cifar_pixels;
using testing::idx_file;
using testing::npy_file;
using namespace std::string_literals;

using Texts = std::vector<std::string>;

TEST(PixelArrays, ReadsIdxFiles) {
  const PixelArray images = read_idx_images(idx_file({2, 3, 2}, "abcdefghijkl"), "train-images");
  EXPECT_EQ(images.images, 2);
  EXPECT_EQ(images.height, 3);
  EXPECT_EQ(images.width, 2);
  EXPECT_EQ(images.channels, 1);
  EXPECT_EQ(std::string(images.pixels.begin(), images.pixels.end()), "abcdefghijkl");
  EXPECT_EQ(read_idx_labels(idx_file({3}, "\x07\x00\xff"s), "labels"), (Texts{"7", "0", "255"}));
}

TEST(PixelArrays, RefusesIdxFilesOfAnotherForm) {
  EXPECT_ERROR(read_idx_images(idx_file({2, 3, 2}, "abc"), "x"), DataError,
               "x: has 3 bytes of data, not the 2 x 3 x 2 that its head says");
  EXPECT_ERROR(read_idx_images(idx_file({12}, "abcdefghijkl"), "x"), DataError,
               "begins with 0x00000801, expected 0x00000803");
  EXPECT_ERROR(read_idx_images("\0\0\x08\x03\0\0"s, "x"), DataError, "within the head");
  EXPECT_ERROR(read_idx_labels("", "x"), DataError, "within the head");
  // 2^96 pixels overflow 64 bits.
  const std::string huge = idx_file({0xffffffff, 0xffffffff, 0xffffffff}, "");
  EXPECT_ERROR(read_idx_images(huge, "x"), DataError, "has 0 bytes of data");
}

TEST(PixelArrays, ReadsCifarsRecords) {
  const std::string ten = "\3"s + cifar_pixels(1, 2, 3) + "\7" + cifar_pixels(4, 5, 6);
  const PixelArray images = read_cifar_records(ten, 1, "data_batch_1.bin");
  EXPECT_EQ(images.images, 2);
  EXPECT_TRUE(images.planar);
  EXPECT_EQ(images.labels, (Texts{"3", "7"}));
  EXPECT_EQ(images.pixels[3072 + 1024], 5);
  const std::string hundred = "\x0b\x63" + cifar_pixels(1, 2, 3);
  EXPECT_EQ(read_cifar_records(hundred, 2, "train.bin").labels, (Texts{"99"}));
  EXPECT_ERROR(read_cifar_records(ten, 2, "x"), DataError, "expected records of 3074");
  EXPECT_ERROR(read_cifar_records("", 1, "x"), DataError, "0 bytes");
}

TEST(PixelArrays, ReadsCifarsPickles) {
  const std::string two = cifar_pixels(1, 2, 3) + cifar_pixels(4, 5, 6);
  const PixelArray images = read_cifar_pickle(cifar_pickle({3, 9}, two), "data_batch_1");
  EXPECT_EQ(images.images, 2);
  EXPECT_EQ(images.labels, (Texts{"3", "9"}));
  EXPECT_EQ(std::string(images.pixels.begin(), images.pixels.end()), two);
  EXPECT_EQ(read_cifar_pickle(cifar_pickle({1, 2}, two, "fine_labels"), "train").labels,
            (Texts{"1", "2"}));
  EXPECT_EQ(read_cifar_names(cifar_names({"cat", "dog"}), "meta"), (Texts{"cat", "dog"}));
  EXPECT_ERROR(read_cifar_pickle(cifar_pickle({1}, two), "x"), DataError, "\"data\" is 1 x 3072");
  EXPECT_ERROR(read_cifar_pickle(cifar_pickle({1, 2}, two, "labels", "f4"), "x"), DataError,
               "of type f4");
  EXPECT_ERROR(read_cifar_pickle(cifar_pickle({1, 2}, two, "others"), "x"), DataError,
               "no list \"labels\"");
  EXPECT_ERROR(read_cifar_pickle(cifar_names({"cat"}), "x"), DataError, "no array \"data\"");
  EXPECT_ERROR(read_cifar_names(cifar_pickle({1, 2}, two), "x"), DataError, "no list");
}

// A line of so many values from `first` on.
std::string row(int64_t count, int first = 0, char separator = ',') {
  std::string out;
  for (int64_t i = 0; i < count; ++i) {
    out += (i == 0 ? "" : std::string(1, separator)) + std::to_string((first + i) % 256);
  }
  return out;
}

TEST(PixelArrays, ReadsNumPysFiles) {
  const PixelArray grey = read_npy_images(npy_file("|u1", "(2, 1, 3)", "abcdef"), "x_train.npy");
  EXPECT_EQ(grey.images, 2);
  EXPECT_EQ(grey.height, 1);
  EXPECT_EQ(grey.width, 3);
  EXPECT_EQ(grey.channels, 1);
  EXPECT_EQ(std::string(grey.pixels.begin(), grey.pixels.end()), "abcdef");
  const PixelArray colours = read_npy_images(npy_file("|u1", "(1, 1, 2, 3)", "abcdef"), "x.npy");
  EXPECT_EQ(colours.channels, 3);
  EXPECT_FALSE(colours.planar);
  EXPECT_EQ(read_npy_images(npy_file("|u1", "(1, 2, 3, 1)", "abcdef"), "x.npy").channels, 1);
  EXPECT_EQ(read_npy_labels(npy_file("|u1", "(3,)", "\0\7\xff"s), "y.npy"),
            (Texts{"0", "7", "255"}));
  EXPECT_EQ(read_npy_labels(npy_file("<i8", "(1, 1)", "\5\1\0\0\0\0\0\0"s), "y.npy"),
            (Texts{"261"}));
}

TEST(PixelArrays, RefusesNumPysFilesOfAnotherForm) {
  const auto refused = [](const std::string& file, const std::string& what) {
    EXPECT_ERROR(read_npy_images(file, "x"), DataError, what);
  };
  refused("", "no .npy file");
  refused(npy_file("|u1", "(2, 1, 3)", "abcde"), "5 bytes of data, which are not 2 x 1 x 3 of |u1");
  refused(npy_file("|O", "(2, 1, 3)", "abcdef"), "or of another type");
  refused(npy_file("<f4", "(1, 1, 1)", "abcd"), "1 x 1 x 1 of <f4; expected bytes");
  refused(npy_file("|u1", "(1, 3, 1, 2)", "abcdef"), "expected bytes");
  refused(npy_file("|u1", "(4294967295, 4294967295, 4294967295)", "abcdef"), "is not of images");
  refused(npy_file("|u1", "(-1, 2)", "abcdef"), "its shape (-1, 2) is not of images");
  refused(npy_file("|u1", "6", "abcdef"), "its head has no shape");
  refused(npy_file("|u1", "(2, 1, 3)", "abcdef").replace(10, 8, "{'other'"), "has no 'descr'");
  refused(npy_file("|u1", "(2, 1, 3)", "").substr(0, 30), "cut off within its head");
  EXPECT_ERROR(read_npy_labels(npy_file("|i1", "(2,)", "\1\xff"), "y"), DataError,
               "label 1 is negative");
  EXPECT_ERROR(read_npy_labels(npy_file("|u1", "(1, 2)", "ab"), "y"), DataError,
               "expected a whole number for each image");
  EXPECT_ERROR(read_npy_labels(npy_file(">i2", "(1,)", "ab"), "y"), DataError, "whole number");
}

TEST(PixelArrays, ReadsTables) {
  std::string head = "label";
  for (int i = 0; i < 64; ++i) head += ",pixel" + std::to_string(i);
  const PixelArray images = read_pixel_table(
      head + "\r\n5," + row(64) + "\r\n\n7," + row(64, 100) + "\n", "", "train.csv");
  EXPECT_EQ(images.images, 2);
  EXPECT_EQ(images.height, 8);
  EXPECT_EQ(images.channels, 1);
  EXPECT_EQ(images.labels, (Texts{"5", "7"}));
  EXPECT_EQ(images.pixels[65], 101);

  const PixelArray bare = read_pixel_table("cat," + row(64) + "\ndog," + row(64), "", "train.csv");
  EXPECT_EQ(bare.labels, (Texts{"cat", "dog"}));
  EXPECT_EQ(bare.images, 2);

  // HAM10000's tables have colours in turn, and the label last.
  std::string colours;
  for (int i = 0; i < 192; ++i) colours += "\"p" + std::to_string(i) + "\",";
  const PixelArray coloured =
      read_pixel_table(colours + "Label\n" + row(192) + ",3\n", "", "hmnist_8_8_RGB.csv");
  EXPECT_EQ(coloured.channels, 3);
  EXPECT_EQ(coloured.labels, (Texts{"3"}));
  EXPECT_EQ(coloured.pixels[191], 191);
  const PixelArray named =
      read_pixel_table(colours + "kind\n" + row(192) + ",3\n", "kind", "x.csv");
  EXPECT_EQ(named.labels, (Texts{"3"}));

  const PixelArray unlabelled = read_pixel_table(row(64) + "\n" + row(64), "", "test.csv");
  EXPECT_EQ(unlabelled.images, 2);
  EXPECT_TRUE(unlabelled.labels.empty());
}

TEST(PixelArrays, TellsTablesFromOthers) {
  EXPECT_TRUE(is_pixel_table(row(785) + "\n1,2"));
  EXPECT_TRUE(is_pixel_table(row(784)));
  EXPECT_TRUE(is_pixel_table(row(3 * 28 * 28 + 1)));
  EXPECT_FALSE(is_pixel_table("id,breed\n"));
  EXPECT_FALSE(is_pixel_table(row(10)));
  EXPECT_FALSE(is_pixel_table(row(785, 0, ';')));
  EXPECT_FALSE(is_pixel_table(""));
}

TEST(PixelArrays, NamesTheLineOfATableThatIsWrong) {
  EXPECT_ERROR(read_pixel_table("1," + row(64) + "\n1," + row(63), "", "t.csv"), DataError,
               "t.csv:2: 64 fields, where the first line has 65");
  EXPECT_ERROR(read_pixel_table("1," + row(64) + "\n1," + row(63) + ",256", "", "t.csv"), DataError,
               "t.csv:2: column 65: \"256\" is no pixel");
  EXPECT_ERROR(read_pixel_table("1," + row(63) + ",0.5", "", "t.csv"), DataError,
               "t.csv:1: column");
  EXPECT_ERROR(read_pixel_table("1," + row(64), "kind", "t.csv"), DataError,
               "t.csv: no column \"kind\" (--label)");
}

}  // namespace
}  // namespace lockstep
