// The images of a split that no single machine of the run may have whole. The ranks find out at the
// start which place (batches/place.h) has which shards. What a place lacks its first rank fetches
// from others, image by image (batches/image_fetcher.h), and hands to its neighbours. Where every
// place has all shards, nothing is opened and nothing sent.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "batches/image_epochs.h"
#include "batches/image_fetcher.h"
#include "batches/place.h"
#include "data/images/images_config.h"
#include "data/images/shard_images.h"
#include "dist/pieces/piece_server.h"

namespace lockstep {

class SharedImages : public ImageSet {
 public:
  // `world`: null for a process that is alone. Collective: all ranks open the same split. With
  // Reading::kOwn each place will read images of its own shards only, so nothing is fetched. Throws
  // DataError that names the shards which nobody has, and what open_image_set() throws; on every
  // rank when on one.
  enum class Reading { kAll, kOwn };
  SharedImages(World* world, const ImagesConfig& config, const std::string& split,
               Reading reading = Reading::kAll);
  ~SharedImages() override;

  int64_t size() const override { return set_->size(); }
  const std::vector<std::string>& classes() const override { return set_->classes(); }
  int64_t label(int64_t index) const override { return set_->label(index); }
  std::string name(int64_t index) const override { return set_->name(index); }
  std::string identity() const override { return set_->identity(); }
  // Waits for an image that is not here yet; call it only while `world` is there. Throws
  // MachineError when nobody who has it is left.
  std::span<const std::byte> bytes(int64_t index, std::vector<std::byte>& space) const override;

  // The next images that the ranks of this place will read, in that order: they are fetched ahead.
  void expect(std::span<const int64_t> images) const;
  // Whether expect() has an effect on this rank.
  bool fetches() const { return fetcher_ != nullptr; }
  // Returns the ranks of this rank's place, ascending; empty for a process that is alone.
  std::vector<int> neighbours() const;

  // Divides the images among the places by their shards. Throws ConfigError where the images are in
  // no shards, and for a place without a shard.
  ImagePlaces divide() const;

 private:
  struct Announcement;
  void open(World& world, const ImagesConfig& config, const std::string& split);
  void take(const std::vector<Announcement>& all);
  void connect(World& world, const ImagesConfig& config, const std::string& split);
  void start_server(World& world);
  void start_fetcher(const std::vector<std::string>& meetings, const ImagesConfig& config,
                     const std::string& split);
  bool lacks(std::size_t place, std::size_t shard) const;
  bool lacks_any(std::size_t place) const;
  std::span<const std::byte> from_leader(int64_t index, std::vector<std::byte>& space) const;
  void look() const;

  World* world_ = nullptr;
  std::unique_ptr<ImageSet> set_;
  const ShardImages* shards_ = nullptr;           // set_, when it is of shards
  Places places_;                                 // none for a process that is alone
  std::vector<std::string> hosts_;                // by place
  std::vector<std::vector<int>> holders_;         // by shard: the places that have it
  std::string leader_meeting_;                    // where this place's first rank hands images on
  std::unique_ptr<ImageFetcher> fetcher_;         // of a first rank whose place lacks shards
  std::atomic<ImageFetcher*> serving_ = nullptr;  // fetcher_ for the server's threads
  mutable std::atomic<bool> stopping_ = false;
  mutable std::mutex mutex_;                                // guards idle_
  mutable std::vector<std::unique_ptr<PieceClient>> idle_;  // connections to the first rank
  std::unique_ptr<PieceServer> server_;                     // last: uses all the others
};

}  // namespace lockstep
