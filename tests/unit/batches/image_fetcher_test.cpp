// Images that come from other machines, over loopback.
#include "batches/image_fetcher.h"

#include <gtest/gtest.h>

#include <numeric>

#include "data/images/prepare_images.h"
#include "dist/pieces/piece_server.h"
#include "support/expect_error.h"
#include "support/image_files.h"

namespace lockstep {
namespace {

class ImageFetchers : public ::testing::Test {
 protected:
  ImageFetchers() {
    write_tree(path("tree"), 4, 100);
    prepare_images({.input = path("tree"), .out = path("all"), .shard_bytes = 12'000});
    fs::create_directory(path("part"));
    for (const auto& entry : fs::directory_iterator(path("all"))) {
      if (entry.path().extension() == ".shard") continue;
      fs::copy(entry.path(), path("part") / entry.path().filename());
    }
    all_ = open_shard_images(path("all"), "train");
    part_ = open_shard_images(path("part"), "train");
  }
  fs::path path(const std::string& name) const { return folder_.path() / name; }

  // A server of all images; `change` may change their bytes or throw.
  using Change = std::function<void(int64_t image, std::vector<std::byte>& bytes)>;
  std::unique_ptr<PieceServer> server(const Change& change = {}) {
    return std::make_unique<PieceServer>(
        "127.0.0.1", Token{},
        [this, change](const DataPiece& piece, std::vector<std::byte>& space) {
          ++asked_;
          std::vector<std::byte> unused;
          const auto image = static_cast<int64_t>(piece.at);
          const auto bytes = all_->bytes(image, unused);
          space.assign(bytes.begin(), bytes.end());
          if (change) change(image, space);
          return std::span<const std::byte>(space);
        });
  }
  // All peers have all shards.
  std::unique_ptr<ImageFetcher> fetcher(const std::vector<std::string>& meetings,
                                        int64_t limit = 0) {
    ImageFetcher::Sources sources;
    std::vector<int> every(meetings.size());
    std::iota(every.begin(), every.end(), 0);
    for (std::size_t i = 0; i < meetings.size(); ++i) {
      sources.peers.push_back({fmt::format("node{}", i), meetings[i]});
    }
    sources.holders.assign(part_->shards(), every);
    return std::make_unique<ImageFetcher>(
        *part_, std::make_unique<ImageCache>(path("cache"), "train", *part_), std::move(sources),
        limit);
  }
  void expect_right(ImageFetcher& from, int64_t image, const ImageFetcher::Watch& watch = {}) {
    std::vector<std::byte> got, unused;
    EXPECT_TRUE(std::ranges::equal(from.get(image, got, watch), all_->bytes(image, unused)))
        << image;
  }
  std::vector<int64_t> all_images() const {
    std::vector<int64_t> out(static_cast<std::size_t>(part_->size()));
    std::iota(out.begin(), out.end(), 0);
    return out;
  }

  TemporaryFolder folder_;
  std::unique_ptr<ShardImages> all_, part_;
  std::atomic<int> asked_ = 0;
};

TEST_F(ImageFetchers, BringWhatWasExpectedAndWhatWasNot) {
  auto a = server(), b = server();
  {
    auto fetcher = this->fetcher({a->meeting(), b->meeting()});
    expect_right(*fetcher, 5);
    fetcher->expect(all_images());
    for (int64_t image : all_images()) expect_right(*fetcher, image);
    EXPECT_EQ(fetcher->fetched().images, part_->size()) << "each once, though two have it";
  }
  const int before = asked_;
  auto again = fetcher({a->meeting()});
  for (int64_t image : all_images()) expect_right(*again, image);
  EXPECT_EQ(asked_, before) << "all of it is here from the first time";
}

TEST_F(ImageFetchers, FetchAgainWhatIsDamagedOnDisk) {
  auto a = server();
  { expect_right(*fetcher({a->meeting()}), 3); }
  const fs::path shard = path("cache") / part_->shard_name(part_->place(3).shard);
  write_file(shard, std::string(fs::file_size(shard), 'x'));
  auto again = fetcher({a->meeting()});
  expect_right(*again, 3);
  EXPECT_EQ(again->fetched().images, 1);
}

TEST_F(ImageFetchers, KeepToTheLimit) {
  auto a = server();
  int64_t largest = 0;
  for (int64_t i : all_images()) {
    largest = std::max<int64_t>(largest, ImageCache::cost(part_->place(i)));
  }
  auto fetcher = this->fetcher({a->meeting()}, 4 * largest);
  fetcher->expect(all_images());
  fetcher->expect(all_images());
  for (int round = 0; round < 2; ++round) {
    for (int64_t image : all_images()) expect_right(*fetcher, image);
  }
  EXPECT_GT(fetcher->fetched().images, part_->size() * 3 / 2) << "most of it came twice";
  fetcher.reset();
  int64_t kept = 0;
  for (int64_t image : ImageCache(path("cache"), "train", *part_).found()) {
    kept += ImageCache::cost(part_->place(image));
  }
  EXPECT_LE(kept, 4 * largest);
}

// No image fits: each comes when it is read, stays until then and goes.
TEST_F(ImageFetchers, GiveImagesThatAreLargerThanTheLimit) {
  auto a = server();
  auto fetcher = this->fetcher({a->meeting()}, 1);
  fetcher->expect(all_images());
  for (int64_t image : all_images()) expect_right(*fetcher, image);
  EXPECT_EQ(fetcher->fetched().images, part_->size());
  fetcher.reset();
  EXPECT_TRUE(ImageCache(path("cache"), "train", *part_).found().empty());
}

// Two ranks of one machine: one reads what only the other's progress makes room for.
TEST_F(ImageFetchers, GiveWhatIsReadOutOfOrderBesideALimitThatIsUsedUp) {
  auto a = server();
  auto fetcher = this->fetcher({a->meeting()}, 2 * ImageCache::cost(part_->place(0)));
  fetcher->expect(all_images());
  for (int64_t image = part_->size() - 1; image >= 0; --image) expect_right(*fetcher, image);
}

TEST_F(ImageFetchers, AskAnotherWhoHasItWhenBytesDifferOrAreRefused) {
  auto damaged = server([](int64_t, std::vector<std::byte>& bytes) { bytes[9] ^= std::byte{1}; });
  auto refusing = server([](int64_t, std::vector<std::byte>&) { throw DataError("no"); });
  auto right = server();
  auto fetcher = this->fetcher({damaged->meeting(), refusing->meeting(), right->meeting()});
  fetcher->expect(all_images());
  for (int64_t image : all_images()) expect_right(*fetcher, image);
}

TEST_F(ImageFetchers, NameImageShardAndHostWhenNobodyHasTheRightBytes) {
  auto damaged = server([](int64_t, std::vector<std::byte>& bytes) { bytes[9] ^= std::byte{1}; });
  auto fetcher = this->fetcher({damaged->meeting()});
  std::vector<std::byte> space;
  EXPECT_ERROR(fetcher->get(0, space, {}), Error,
               "train/class0/img0.JPEG of train-00000.shard on node0 differs from its hash");
}

TEST_F(ImageFetchers, AskAnotherWhenAPeerDies) {
  auto dies = server(), stays = server();
  auto fetcher = this->fetcher({dies->meeting(), stays->meeting()});
  expect_right(*fetcher, 0);
  dies.reset();
  fetcher->expect(all_images());
  for (int64_t image : all_images()) expect_right(*fetcher, image);
}

TEST_F(ImageFetchers, TellWhenTheLastOneWhoHasItIsLost) {
  auto dies = server();
  auto fetcher = this->fetcher({dies->meeting()});
  expect_right(*fetcher, 0);
  dies.reset();
  std::string why;
  std::vector<std::byte> space;
  EXPECT_ERROR(fetcher->get(7, space, {.lost = [&](const std::string& said) { why = said; }}),
               MachineError, "no machine that has train-");
  EXPECT_NE(why.find("node0 ended the connection"), std::string::npos) << why;
}

TEST_F(ImageFetchers, WhoWaitsLooksAroundAndMayGiveUp) {
  auto slow = server([](int64_t, std::vector<std::byte>&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
  });
  auto fetcher = this->fetcher({slow->meeting()});
  std::vector<std::byte> space;
  auto look = [] { throw MachineError("rank 1 is lost"); };
  EXPECT_ERROR(fetcher->get(0, space, {.look = look}), MachineError, "rank 1 is lost");
  fetcher->stop();
  EXPECT_ERROR(fetcher->get(1, space, {}), MachineError, "the run ends");
}

}  // namespace
}  // namespace lockstep
