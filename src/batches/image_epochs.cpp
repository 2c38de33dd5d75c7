#include "batches/image_epochs.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/random.h"

namespace lockstep {

namespace {

// Numbers of 64 bits hold 2^31 images times as many.
int64_t scaled(int64_t value, int64_t by, int64_t of) {
  return static_cast<int64_t>(static_cast<__int128>(value) * by / of);
}

}  // namespace

std::vector<int> assign_shards(const std::vector<std::vector<int>>& holders,
                               const std::vector<int64_t>& images, const std::vector<int>& ranks) {
  std::vector<std::size_t> order(holders.size());
  std::iota(order.begin(), order.end(), 0);
  // Those with the least choice come first, and of them the largest.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (holders[a].size() != holders[b].size()) return holders[a].size() < holders[b].size();
    return images[a] > images[b];
  });
  std::vector<int64_t> load(ranks.size(), 0);
  std::vector<int> out(holders.size(), 0);
  for (std::size_t shard : order) {
    auto fuller = [&](int a, int b) {
      return (load[a] + images[shard]) * ranks[b] < (load[b] + images[shard]) * ranks[a];
    };
    out[shard] = *std::min_element(holders[shard].begin(), holders[shard].end(), fuller);
    load[out[shard]] += images[shard];
  }
  return out;
}

ImageEpochs::ImageEpochs(int64_t images, const Options& options)
    : options_(options), steps_(options.step_images), apart_(false), images_(images) {
  places_.images.emplace_back(static_cast<std::size_t>(images));
  std::iota(places_.images[0].begin(), places_.images[0].end(), 0);
}

ImageEpochs::ImageEpochs(ImagePlaces places, const Options& options)
    : options_(options), steps_(options.step_images), places_(std::move(places)), apart_(true) {
  for (const auto& images : places_.images) images_ += std::ssize(images);
}

void ImageEpochs::continue_epoch(int64_t epoch, std::vector<EpochStretch> done) {
  steps_.continue_epoch(epoch, std::move(done));
}

int64_t ImageEpochs::images_in_step(int64_t epoch, int64_t step_in_epoch) const {
  int64_t out = 0;
  for (std::size_t place = 0; place < places_.images.size(); ++place) {
    out += range_of(place, epoch, step_in_epoch).count();
  }
  return out;
}

// The part of a place's epoch that is in a step.
EpochSteps::Range ImageEpochs::range_of(std::size_t place, int64_t epoch,
                                        int64_t step_in_epoch) const {
  const int64_t own = std::ssize(places_.images[place]);
  const auto [begin, end] = steps_.range(epoch, step_in_epoch, images_);
  return {scaled(own, begin, images_), scaled(own, end, images_)};
}

std::vector<int64_t> ImageEpochs::part(int64_t epoch, int64_t step_in_epoch, int64_t part,
                                       const StepParts& parts) {
  auto place_of = [&](int64_t p) {
    return apart_ ? static_cast<std::size_t>(places_.of_rank[parts.rank_of(p)]) : 0;
  };
  const std::size_t place = place_of(part);
  std::vector<int64_t> of_place;  // parts
  for (int64_t p = 0; p < parts.count(); ++p) {
    if (place_of(p) == place) of_place.push_back(p);
  }
  const EpochSteps::Range range = range_of(place, epoch, step_in_epoch);
  const StepParts::Range mine = parts.range(range.count(), part, of_place);
  std::lock_guard lock(mutex_);
  const std::vector<int32_t>& images = order(epoch, place);
  return {images.begin() + range.begin + mine.begin, images.begin() + range.begin + mine.end};
}

int64_t ImageEpochs::smallest_part(int64_t epoch, int64_t step_in_epoch, int64_t parts) const {
  if (!apart_) return images_in_step(epoch, step_in_epoch) / parts;
  const int64_t each = parts / std::ssize(places_.of_rank);
  int64_t least = images_;
  for (std::size_t place = 0; place < places_.images.size(); ++place) {
    const int64_t own =
        each * std::count(places_.of_rank.begin(), places_.of_rank.end(), static_cast<int>(place));
    least = std::min(least, range_of(place, epoch, step_in_epoch).count() / own);
  }
  return least;
}

// Two epochs are kept: near an epoch's end the next one is looked at, too.
const std::vector<int32_t>& ImageEpochs::order(int64_t epoch, std::size_t place) {
  auto [found, added] = orders_.try_emplace({epoch, place});
  if (!added) return found->second;
  std::erase_if(orders_, [&](const auto& entry) {
    return entry.first.first < epoch - 1 || entry.first.first > epoch + 1;
  });
  std::vector<int32_t>& out = orders_[{epoch, place}];
  out = places_.images[place];
  uint64_t key = combine_keys(options_.seed, static_cast<uint64_t>(epoch));
  if (apart_) key = combine_keys(key, place);
  shuffle_with_key(out, key);
  return out;
}

}  // namespace lockstep
