// Image sets in folders and shards, and what makes shards out of them.
#include "data/images/image_set.h"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "data/images/image_decoder.h"
#include "data/images/prepare_images.h"
#include "support/expect_error.h"
#include "support/image_files.h"

namespace lockstep {
namespace {

using Entries = std::map<std::string, std::vector<std::byte>>;

std::vector<std::byte> tar_of(const Entries& entries) {
  std::vector<std::byte> out(1 << 20);
  std::size_t used = 0;
  archive* writer = archive_write_new();
  archive_write_set_format_ustar(writer);
  archive_write_open_memory(writer, out.data(), out.size(), &used);
  for (const auto& [path, bytes] : entries) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, path.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(bytes.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_write_header(writer, entry);
    archive_write_data(writer, bytes.data(), bytes.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
  out.resize(used);
  return out;
}

class ImageSets : public ::testing::Test {
 protected:
  fs::path path(const std::string& name) const { return folder_.path() / name; }
  PrepareImagesOptions options(const std::string& input, const std::string& out = "shards") const {
    return {.input = path(input), .out = path(out), .threads = 2};
  }
  TemporaryFolder folder_;
};

void expect_same(const ImageSet& a, const ImageSet& b) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(a.classes(), b.classes());
  std::vector<std::byte> space_a, space_b;
  for (int64_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a.name(i), b.name(i));
    EXPECT_EQ(a.label(i), b.label(i));
    auto x = a.bytes(i, space_a), y = b.bytes(i, space_b);
    EXPECT_TRUE(std::equal(x.begin(), x.end(), y.begin(), y.end())) << a.name(i);
  }
}

TEST_F(ImageSets, ReadAFolder) {
  write_tree(path("tree"));
  write_file(path("tree/train/class1/notes.txt"), "no image");
  auto set = open_image_set(path("tree"), "train");
  EXPECT_EQ(set->size(), 15);
  EXPECT_EQ(set->classes(), (std::vector<std::string>{"class0", "class1", "class2"}));
  EXPECT_EQ(set->label(0), 0);
  EXPECT_EQ(set->label(5), 1);
  EXPECT_EQ(set->label(14), 2);
  EXPECT_EQ(set->name(6), "train/class1/img1.JPEG");
}

TEST_F(ImageSets, AreTheSameInShards) {
  write_tree(path("tree"));
  PrepareImagesOptions o = options("tree");
  o.shard_bytes = 5000;  // several
  ImagesManifest manifest = prepare_images(o);
  ASSERT_EQ(manifest.splits.size(), 2u);
  EXPECT_GT(manifest.splits[0].shards.size(), 1u);
  for (const char* split : {"train", "val"}) {
    expect_same(*open_image_set(path("tree"), split), *open_image_set(path("shards"), split));
  }
  for (const FileRecord& file : manifest.files) {
    EXPECT_EQ(file, record_file(path("shards") / file.name));
  }
  EXPECT_ERROR(prepare_images(o), ConfigError, "already holds");
}

TEST_F(ImageSets, HaveTheIdentityOfTheirContent) {
  write_tree(path("a"));
  write_tree(path("b"));
  prepare_images(options("a", "shards_a"));
  prepare_images(options("b", "shards_b"));
  auto identity = [&](const char* data, const char* split) {
    return open_image_set(path(data), split)->identity();
  };
  EXPECT_EQ(identity("a", "train"), identity("b", "train"));
  EXPECT_EQ(identity("shards_a", "train"), identity("shards_b", "train"));
  EXPECT_NE(identity("a", "train"), identity("a", "val"));
  write_bytes(path("b/train/class0/img0.JPEG"), jpeg_file(41, 77, 3));
  EXPECT_NE(identity("a", "train"), identity("b", "train"));
}

TEST_F(ImageSets, ComeOutOfArchivesInTheSameOrder) {
  write_tree(path("tree"));
  Entries train, val, classes;
  std::string labels;
  std::vector<std::byte> space;
  auto set = open_image_set(path("tree"), "train");
  std::map<std::string, Entries> by_class;
  for (int64_t i = set->size() - 1; i >= 0; --i) {
    auto bytes = set->bytes(i, space);
    train[set->name(i)] = {bytes.begin(), bytes.end()};
    fs::path name = set->name(i);
    by_class[name.parent_path().filename().string()][name.filename().string()] =
        train[set->name(i)];
  }
  for (const auto& [name, entries] : by_class) classes[name + ".tar"] = tar_of(entries);
  auto val_set = open_image_set(path("tree"), "val");
  for (int64_t i = 0; i < val_set->size(); ++i) {
    auto bytes = val_set->bytes(i, space);
    std::string file = fmt::format("ILSVRC2012_val_{:08}.JPEG", i + 1);
    val[file] = {bytes.begin(), bytes.end()};
    labels += val_set->classes()[static_cast<std::size_t>(val_set->label(i))] + "\n";
  }
  fs::create_directories(path("plain"));
  write_bytes(path("plain/train.tar"), tar_of(train));
  prepare_images(options("plain", "from_plain"));
  expect_same(*set, *open_image_set(path("from_plain"), "train"));

  write_bytes(path("ilsvrc/ILSVRC2012_img_train.tar"), tar_of(classes));
  write_bytes(path("ilsvrc/ILSVRC2012_img_val.tar"), tar_of(val));
  EXPECT_ERROR(prepare_images(options("ilsvrc", "no_list")), DataError, "--labels FILE");
  write_file(path("labels.txt"), labels);
  PrepareImagesOptions o = options("ilsvrc", "from_ilsvrc");
  o.flat_labels = path("labels.txt");
  prepare_images(o);
  expect_same(*set, *open_image_set(path("from_ilsvrc"), "train"));
  auto flat = open_image_set(path("from_ilsvrc"), "val");
  ASSERT_EQ(flat->size(), val_set->size());
  EXPECT_EQ(flat->name(0), "val/class0/ILSVRC2012_val_00000001.JPEG");
  EXPECT_EQ(flat->label(5), val_set->label(5));
}

TEST_F(ImageSets, OfFlatFoldersHaveTheirClassesFromATable) {
  write_bytes(path("flat/photos/a.jpg"), jpeg_file(20, 20, 1));
  write_bytes(path("flat/photos/b.jpg"), jpeg_file(20, 20, 2));
  write_file(path("flat/photos/c.webp"), "not read");
  const auto names = [&](const std::string& input, const std::string& table,
                         ImageColumns columns = {}) {
    static int number = 0;
    write_file(path("labels.csv"), table);
    PrepareImagesOptions o = options(input, fmt::format("out{}", ++number));
    o.flat_labels = path("labels.csv");
    o.columns = std::move(columns);
    prepare_images(o);
    const auto set = open_image_set(o.out, "train");
    std::vector<std::string> out;
    for (int64_t i = 0; i < set->size(); ++i) out.push_back(set->name(i));
    return out;
  };
  using Names = std::vector<std::string>;
  const Names wanted{"train/cat/b.jpg", "train/dog/a.jpg"};
  EXPECT_EQ(names("flat", "id,breed\na,dog\nb,cat\n"), wanted);
  EXPECT_EQ(names("flat/photos", "label,seen,file_name\ndog,1,x/a.jpg\n\"cat\",2,b.jpg\n"), wanted);
  EXPECT_EQ(names("flat", "ImageId,PredictionString\na,dog 1 2 3 4 dog 5 6 7 8\nb,cat 1 2 3 4\n"),
            wanted);
  EXPECT_EQ(names("flat", "id,breed,age\na,dog,1\nb,cat,2\n", {.image = "id", .label = "breed"}),
            wanted);
  EXPECT_EQ(names("flat", "image_id,label\na,3\nb,0\n"),
            (Names{"train/0000/b.jpg", "train/0003/a.jpg"}));
  EXPECT_ERROR(names("flat", "id,breed,age\na,dog,1\n"), DataError,
               "which column is the class? (it has id, breed, age)");
  EXPECT_ERROR(names("flat", "id,breed\na,dog\n", {.image = "", .label = "bred"}), DataError,
               "no column \"bred\" (--label); did you mean breed?");
  EXPECT_ERROR(names("flat", "id,breed\na,dog\nb\n"), DataError,
               "labels.csv:3: 1 field, expected 2");
  EXPECT_ERROR(names("flat", "id,breed\na,dog\nb,\n"), DataError, "labels.csv:3: no class for b");
  EXPECT_ERROR(names("flat", "id,breed\na,dog\n"), DataError, "labels.csv: no line for b.jpg");
  EXPECT_ERROR(names("flat", "id,breed\n"), DataError, "an empty list of labels");
}

TEST_F(ImageSets, OfFlatFoldersHaveTheirClassesInTheirNames) {
  EXPECT_EQ(class_of_file_name("cat.0.jpg"), "cat");
  EXPECT_EQ(class_of_file_name("great_pyrenees_12.jpg"), "great_pyrenees");
  EXPECT_EQ(class_of_file_name("mp3-player (7).png"), "mp3-player");
  EXPECT_EQ(class_of_file_name("class2_15.png"), "class2");
  EXPECT_EQ(class_of_file_name("17.jpg"), "");
  EXPECT_EQ(class_of_file_name("cat.jpg"), "");
  for (const char* name : {"cat.0.jpg", "cat.1.jpg", "dog.0.jpg"}) {
    write_bytes(path("pets/train") / name, jpeg_file(20, 20, 1));
  }
  EXPECT_ERROR(prepare_images(options("pets")), DataError,
               "--classes-by-name: \"cat\", as the file's name says");
  PrepareImagesOptions o = options("pets", "pet-shards");
  o.classes_by_name = true;
  EXPECT_EQ(prepare_images(o).classes, (std::vector<std::string>{"cat", "dog"}));
  o.out = path("others");
  o.flat_labels = path("labels.csv");
  EXPECT_ERROR(prepare_images(o), ConfigError, "expected one of the two");
  o.flat_labels.clear();
  write_bytes(path("pets/train/17.jpg"), jpeg_file(20, 20, 1));
  EXPECT_ERROR(prepare_images(o), DataError, "17.jpg: its name says no class");
}

TEST_F(ImageSets, SayWhichPicturesAreNotRead) {
  write_bytes(path("photos/cats/a.webp"), jpeg_file(20, 20, 1));
  write_bytes(path("photos/cats/b.WEBP"), jpeg_file(20, 20, 1));
  write_bytes(path("photos/dogs/c.bmp"), jpeg_file(20, 20, 1));
  write_bytes(path("photos/dogs/notes.txt"), jpeg_file(20, 20, 1));
  EXPECT_ERROR(prepare_images(options("photos")), DataError,
               "1 .bmp and 2 .webp not read: convert them to JPEG or PNG");
  write_bytes(path("tree/train/cats/a.webp"), jpeg_file(20, 20, 1));
  EXPECT_ERROR(open_image_set(path("tree"), "train"), DataError, "1 .webp not read");
  write_bytes(path("photos/dogs/d.jpg"), jpeg_file(20, 20, 1));
  ::testing::internal::CaptureStderr();
  prepare_images(options("photos"));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("photos: 1 .bmp and 2 .webp not read"), std::string::npos) << said;
}

// As Kaggle's archive of ILSVRC has them.
TEST_F(ImageSets, FindSplitsDeepInAnArchive) {
  Entries entries;
  for (const char* name : {"train/cat/a.JPEG", "train/dog/b.JPEG", "val/one_1.JPEG",
                           "val/one_2.JPEG", "test/secret_1.JPEG"}) {
    entries[std::string("ILSVRC/Data/CLS-LOC/") + name] = jpeg_file(30, 30, 1);
  }
  entries["ILSVRC/Annotations/train/cat/a.xml"] = {std::byte{'<'}};
  write_bytes(path("all.tar"), tar_of(entries));
  write_file(path("labels.txt"), "one_2.JPEG dog\none_1.JPEG cat\n");
  PrepareImagesOptions o = options("all.tar");
  o.flat_labels = path("labels.txt");
  ImagesManifest manifest = prepare_images(o);
  ASSERT_EQ(manifest.splits.size(), 2u);
  auto val = open_image_set(path("shards"), "val");
  EXPECT_EQ(val->name(1), "val/dog/one_2.JPEG");
  EXPECT_EQ(open_image_set(path("shards"), "train")->size(), 2);
}

TEST_F(ImageSets, RefuseAListOfNumbers) {
  write_tree(path("tree"));
  write_bytes(path("tree/val/flat.JPEG"), jpeg_file(30, 30, 1));
  write_file(path("labels.txt"), "490\n361\n");
  PrepareImagesOptions o = options("tree");
  o.flat_labels = path("labels.txt");
  EXPECT_ERROR(prepare_images(o), DataError, "labels.txt:1: expected the name of a class");
}

TEST_F(ImageSets, ListWhatIsOddAndLeaveOutWhatIsBroken) {
  write_tree(path("tree"));
  write_bytes(path("tree/train/class0/really_png.JPEG"), png_file(33, 44, 1));
  write_bytes(path("tree/train/class0/grey.JPEG"), jpeg_file(33, 44, 1, 90, true));
  std::vector<std::byte> whole = jpeg_file(60, 60, 1);
  write_bytes(path("tree/train/class1/cut.JPEG"), std::span(whole).first(whole.size() * 2 / 3));
  write_file(path("tree/train/class1/text.JPEG"), "<html>");
  ImagesManifest manifest = prepare_images(options("tree"));
  EXPECT_EQ(manifest.odd_counts.at("PNG named .JPEG"), 1);
  EXPECT_EQ(manifest.odd_counts.at("greyscale"), 1);
  ASSERT_EQ(manifest.left_out.size(), 2u);
  EXPECT_EQ(manifest.left_out[0].name, "train/class1/cut.JPEG");
  EXPECT_NE(manifest.left_out[0].what.find("cut off"), std::string::npos);
  EXPECT_EQ(open_image_set(path("shards"), "train")->size(), 17);
  ImagesManifest again = read_images_manifest(path("shards"));
  EXPECT_EQ(again.left_out.size(), 2u);
  EXPECT_EQ(again.classes, manifest.classes);
  PrepareImagesOptions strict = options("tree", "strict");
  strict.fail_on_broken = true;
  EXPECT_ERROR(prepare_images(strict), DataError, "train/class1/cut.JPEG");
}

TEST_F(ImageSets, AreResizedToAShorterSide) {
  write_tree(path("tree"), 2, 100);
  PrepareImagesOptions o = options("tree");
  o.resize = 64;
  prepare_images(o);
  auto set = open_image_set(path("shards"), "train");
  std::vector<std::byte> space;
  ImageDecoder decoder;
  for (int64_t i = 0; i < set->size(); ++i) {
    const ImageInfo& info = decoder.open(set->bytes(i, space));
    EXPECT_EQ(std::min(info.width, info.height), 64);
  }
}

TEST_F(ImageSets, RefuseWhatIsIncomplete) {
  EXPECT_ERROR(open_image_set(path("nowhere"), "train"), DataError, "no such folder");
  write_tree(path("tree"));
  EXPECT_ERROR(open_image_set(path("tree"), "vall"), DataError, "did you mean val");
  fs::create_directories(path("tree/val/class3"));
  EXPECT_ERROR(open_image_set(path("tree"), "val"), DataError, "class \"class3\" has no images");
  write_bytes(path("tree/val/class3/a.jpg"), jpeg_file(30, 30, 1));
  fs::remove_all(path("tree/val/class0"));
  auto train = open_image_set(path("tree"), "train"), val = open_image_set(path("tree"), "val");
  EXPECT_ERROR(check_same_classes(*train, *val), DataError, "the second lacks class0");
  EXPECT_ERROR(check_same_classes(*train, *val), DataError, "the first lacks class3");
  EXPECT_ERROR(prepare_images(options("tree")), DataError, "class \"class3\" is not in train");
}

TEST_F(ImageSets, RefuseDamagedShards) {
  write_tree(path("tree"));
  prepare_images(options("tree"));
  std::string index = read_file(path("shards/train.index"));
  write_file(path("shards/train.index"), index.substr(0, index.size() - 30));
  EXPECT_ERROR(open_image_set(path("shards"), "train"), DataError, "train.index: damaged");
  write_file(path("shards/train.index"), index);
  std::string shard = read_file(path("shards/train-00000.shard"));
  write_file(path("shards/train-00000.shard"), shard.substr(0, shard.size() / 2));
  EXPECT_ERROR(open_image_set(path("shards"), "train"), DataError, "damaged");
  write_file(path("shards/train-00000.shard"), "something else, not a shard at all");
  EXPECT_ERROR(open_image_set(path("shards"), "train"), DataError, "LSIMAGES");
  EXPECT_ERROR(open_image_set(path("shards"), "test"), DataError, "no split \"test\"");
}

}  // namespace
}  // namespace lockstep
