// Images of other machines on disk.
#include "data/images/image_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "data/images/prepare_images.h"
#include "support/expect_error.h"
#include "support/failing_files.h"
#include "support/image_files.h"

namespace lockstep {
namespace {

// A folder that has all shards, and a view of it that lacks them.
class ImageCaches : public ::testing::Test {
 protected:
  ImageCaches() {
    write_tree(path("tree"), 3, 200);
    prepare_images({.input = path("tree"), .out = path("all"), .shard_bytes = 40'000});
    fs::create_directory(path("part"));
    for (const auto& entry : fs::directory_iterator(path("all"))) {
      if (entry.path().extension() == ".shard") continue;
      fs::copy(entry.path(), path("part") / entry.path().filename());
    }
    all_ = open_shard_images(path("all"), "train");
    part_ = open_shard_images(path("part"), "train");
  }
  fs::path path(const std::string& name) const { return folder_.path() / name; }
  std::span<const std::byte> bytes(int64_t image) { return all_->bytes(image, space_); }
  int64_t blocks() const {  // of 512 bytes, of all shards
    int64_t out = 0;
    for (const auto& entry : fs::directory_iterator(path("cache"))) {
      struct stat info {};
      ::stat(entry.path().c_str(), &info);
      if (entry.path().extension() == ".shard") out += info.st_blocks;
    }
    return out;
  }

  TemporaryFolder folder_;
  std::vector<std::byte> space_;
  std::unique_ptr<ShardImages> all_, part_;
};

TEST_F(ImageCaches, FindAgainWhatEarlierRunsPutThere) {
  {
    ImageCache cache(path("cache"), "train", *part_);
    EXPECT_TRUE(cache.found().empty());
    for (int64_t image : {7, 2, 11}) cache.put(image, bytes(image));
    cache.drop(11);
    std::vector<std::byte> read;
    cache.read(7, read);
    EXPECT_TRUE(std::ranges::equal(read, bytes(7)));
  }
  ImageCache again(path("cache"), "train", *part_);
  EXPECT_EQ(again.found(), (std::vector<int64_t>{2, 7}));
  std::vector<std::byte> read;
  again.read(2, read);
  EXPECT_TRUE(std::ranges::equal(read, bytes(2)));
  EXPECT_TRUE(part_->matches(2, read));
  EXPECT_FALSE(part_->matches(3, read));
}

TEST_F(ImageCaches, OfOtherImagesBeginAnew) {
  { ImageCache(path("cache"), "train", *part_).put(2, bytes(2)); }
  write_file(path("cache/train.of"), "another set");
  EXPECT_TRUE(ImageCache(path("cache"), "train", *part_).found().empty());
}

TEST_F(ImageCaches, GiveBackTheSpaceOfAllThatWasDropped) {
  ImageCache cache(path("cache"), "train", *part_);
  for (int64_t i = 0; i < part_->size(); ++i) cache.put(i, bytes(i));
  const int64_t full = blocks();
  ASSERT_GT(full, 0);
  int64_t cost = 0;
  for (int64_t i = 0; i < part_->size(); ++i) cost += ImageCache::cost(part_->place(i));
  EXPECT_LE(512 * full, cost) << "an upper bound";
  for (int64_t i = 0; i < part_->size(); i += 2) cache.drop(i);
  for (int64_t i = 1; i < part_->size(); i += 2) {
    std::vector<std::byte> read;
    cache.read(i, read);
    EXPECT_TRUE(part_->matches(i, read)) << "the neighbours stay whole";
  }
  EXPECT_LT(blocks(), full);
  for (int64_t i = 1; i < part_->size(); i += 2) cache.drop(i);
  EXPECT_EQ(blocks(), 0);
}

// One thread drops the neighbours of what the other one puts there.
TEST_F(ImageCaches, KeepWhatIsPutBesideWhatIsDropped) {
  ImageCache cache(path("cache"), "train", *part_);
  std::atomic<bool> over = false;
  std::thread dropping([&] {
    std::vector<std::byte> space;
    while (!over) {
      for (int64_t i = 1; i < part_->size() && !over; i += 2) {
        cache.put(i, all_->bytes(i, space));
        cache.drop(i);
      }
    }
  });
  int wrong = 0;
  for (int round = 0; round < 300; ++round) {
    for (int64_t i = 0; i < part_->size(); i += 2) {
      cache.put(i, bytes(i));
      std::vector<std::byte> read;
      cache.read(i, read);
      wrong += part_->matches(i, read) ? 0 : 1;
      cache.drop(i);
    }
  }
  over = true;
  dropping.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(ImageCaches, OfTwoProcessesHaveFoldersOfTheirOwn) {
  ImageCache one(path("cache"), "train", *part_), other(path("cache"), "train", *part_);
  EXPECT_EQ(one.folder(), path("cache"));
  EXPECT_EQ(other.folder(), path("cache.1"));
}

TEST_F(ImageCaches, SayWhereTheyCannotWrite) {
  write_file(path("file"), "");
  EXPECT_ERROR(ImageCache(path("file/cache"), "train", *part_), MachineError,
               "images.cache=FOLDER");
}

TEST_F(ImageCaches, SetsWithMissingShardsAreWholeOnlyTogether) {
  EXPECT_EQ(part_->identity(), all_->identity());
  EXPECT_EQ(part_->size(), all_->size());
  EXPECT_FALSE(part_->has_shard(0));
  EXPECT_ERROR(part_->bytes(0, space_), DataError, "not there");
  EXPECT_ERROR(open_image_set(path("part"), "train"), DataError,
               "are not there: train-00000.shard");
  EXPECT_EQ(count_images(path("part"), "train"), 15);
}

// A process dies, or the machine loses power, in any change of a file: what a later run finds there
// is whole, or known not to be by its hash, and can be put there again.
TEST_F(ImageCaches, OfAProcessThatDiedAnywhereCanBeUsed) {
  const auto work = [&] {
    ImageCache cache(path("cache"), "train", *part_);
    for (int64_t image : {7, 2, 11, 0}) cache.put(image, bytes(image));
    cache.drop(2);
  };
  fail_files(path("cache").c_str(), 0, FileFault::kNone);
  work();
  const long changes = stop_failing_files();
  ASSERT_GT(changes, 10);
  for (FileFault fault : {FileFault::kKill, FileFault::kPower}) {
    for (long nth = 1; nth <= changes; ++nth) {
      fs::remove_all(path("cache"));
      const pid_t child = ::fork();
      if (child == 0) {
        fail_files(path("cache").c_str(), nth, fault);
        work();
        ::_exit(0);
      }
      int status = 0;
      ::waitpid(child, &status, 0);
      ASSERT_TRUE(WIFSIGNALED(status)) << "change " << nth;
      ImageCache again(path("cache"), "train", *part_);
      std::vector<std::byte> read;
      for (int64_t image : again.found()) {
        try {
          again.read(image, read);
        } catch (const DataError&) {
          read.clear();
        }
        const bool whole = std::ranges::equal(read, bytes(image));
        EXPECT_EQ(part_->matches(image, read), whole) << "change " << nth;
        EXPECT_TRUE(whole || fault != FileFault::kKill) << "change " << nth;
        again.drop(image);
      }
      again.put(7, bytes(7));
      again.read(7, read);
      EXPECT_TRUE(std::ranges::equal(read, bytes(7))) << "change " << nth;
    }
  }
}

// A disk that refuses is an error, and no image is said to be there that is not.
TEST_F(ImageCaches, OfADiskThatRefusesAreRightAsFarAsTheyGo) {
  fail_files(path("cache").c_str(), 0, FileFault::kNone);
  const auto work = [&] {
    ImageCache cache(path("cache"), "train", *part_);
    for (int64_t image : {7, 2, 11, 0}) cache.put(image, bytes(image));
  };
  work();
  const long changes = stop_failing_files();
  for (FileFault fault :
       {FileFault::kFull, FileFault::kQuota, FileFault::kBroken, FileFault::kReadOnly}) {
    for (long nth = 1; nth <= changes; ++nth) {
      fs::remove_all(path("cache"));
      fail_files(path("cache").c_str(), nth, fault);
      EXPECT_ERROR(work(), MachineError, "cache");
      stop_failing_files();
      ImageCache again(path("cache"), "train", *part_);
      std::vector<std::byte> read;
      for (int64_t image : again.found()) {
        again.read(image, read);
        EXPECT_TRUE(std::ranges::equal(read, bytes(image))) << "change " << nth;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
