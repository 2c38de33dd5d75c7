#include "batches/shared_images.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "dist/liveness/heartbeat.h"
#include "dist/liveness/peer_error.h"

namespace lockstep {

namespace {

constexpr const char* kCacheFolder = ".fetched";  // in the data folder, unless images.cache says

std::string readable(int64_t bytes) { return short_bytes(static_cast<double>(bytes)); }

}  // namespace

// What a rank tells the others of its data.
struct SharedImages::Announcement {
  std::string place, host, identity;
  std::string shards;  // a 1 or a 0 for each
  bool sums = false;

  std::string text() const {
    return nlohmann::json{{"place", place},
                          {"host", host},
                          {"identity", identity},
                          {"shards", shards},
                          {"sums", sums}}
        .dump();
  }
  static Announcement from(const std::string& text) {
    const nlohmann::json json = nlohmann::json::parse(text);
    return {json.at("place"), json.at("host"), json.at("identity"), json.at("shards"),
            json.at("sums")};
  }
};

SharedImages::SharedImages(World* world, const ImagesConfig& config, const std::string& split,
                           Reading reading) {
  if (world == nullptr || world->size() == 1) {
    set_ = open_image_set(config.data, split);
    return;
  }
  world_ = world;
  open(*world, config, split);
  if (shards_ != nullptr && reading == Reading::kAll) connect(*world, config, split);
}

SharedImages::~SharedImages() {
  stopping_ = true;
  if (fetcher_) fetcher_->stop();
  server_.reset();
}

// Opens what is here, and learns what the others have.
void SharedImages::open(World& world, const ImagesConfig& config, const std::string& split) {
  std::vector<Announcement> all;
  const std::vector<std::string> texts = gather_results(world, [&] {
    require_data_folder(config.data);
    Announcement mine{.place = place_key(world, config.data), .host = host_of(world)};
    if (has_manifest(config.data)) {
      auto shards = open_shard_images(config.data, split);
      for (std::size_t s = 0; s < shards->shards(); ++s) {
        mine.shards += shards->has_shard(s) ? '1' : '0';
      }
      mine.sums = shards->has_sums();
      shards_ = shards.get();
      set_ = std::move(shards);
    } else {
      set_ = open_image_set(config.data, split);
    }
    mine.identity = set_->identity();
    return mine.text();
  });
  for (const std::string& text : texts) all.push_back(Announcement::from(text));
  take(all);
}

void SharedImages::take(const std::vector<Announcement>& all) {
  std::vector<std::string> keys;
  bool complete = true, same = true, sums = true;
  for (const Announcement& one : all) {
    keys.push_back(one.place);
    complete = complete && one.shards.find('0') == std::string::npos;
    same = same && one.identity == all[0].identity && one.shards.size() == all[0].shards.size();
    sums = sums && one.sums;
  }
  places_ = find_places(keys, world_->rank());
  for (std::size_t p = 0; p < places_.ranks.size(); ++p) {
    hosts_.push_back(all[places_.leader(p)].host);
  }
  if (!same) {
    if (!complete) {
      throw ConfigError(
          "{} of {} differs between the hosts {}: one cannot send another what it lacks",
          kManifestName, set_->name(0), join(hosts_, ", "));
    }
    shards_ = nullptr;  // the comparison of all data names what differs
    return;
  }
  if (shards_ == nullptr) return;
  holders_.resize(shards_->shards());
  for (std::size_t s = 0; s < holders_.size(); ++s) {
    for (std::size_t p = 0; p < places_.ranks.size(); ++p) {
      if (all[places_.leader(p)].shards[s] == '1') holders_[s].push_back(static_cast<int>(p));
    }
    if (!holders_[s].empty()) continue;
    DataError error("{}: on none of the hosts {}", shards_->shard_name(s), join(hosts_, ", "));
    error.set_advice("lockstep cluster setup --copy-share FOLDER brings each shard to one of them");
    throw error;
  }
  if (!complete && !sums) {
    DataError error("some hosts lack shards, and {} has no hashes to check single images by",
                    kManifestName);
    error.set_advice("prepare the images anew, or bring all shards to all hosts (--copy)");
    throw error;
  }
}

bool SharedImages::lacks(std::size_t place, std::size_t shard) const {
  const std::vector<int>& holders = holders_[shard];
  return std::find(holders.begin(), holders.end(), static_cast<int>(place)) == holders.end();
}

bool SharedImages::lacks_any(std::size_t place) const {
  for (std::size_t s = 0; s < holders_.size(); ++s) {
    if (lacks(place, s)) return true;
  }
  return false;
}

// Opens what the places need to send each other images; nothing when all have all.
void SharedImages::connect(World& world, const ImagesConfig& config, const std::string& split) {
  std::vector<std::string> who;
  for (std::size_t p = 0; p < places_.ranks.size(); ++p) {
    std::size_t has = 0;
    for (std::size_t s = 0; s < holders_.size(); ++s) has += lacks(p, s) ? 0 : 1;
    who.push_back(fmt::format("{} has {} of {}", hosts_[p], has, holders_.size()));
  }
  const auto all = static_cast<std::ptrdiff_t>(places_.ranks.size());
  if (std::all_of(holders_.begin(), holders_.end(),
                  [&](const auto& holders) { return std::ssize(holders) == all; })) {
    return;
  }
  if (world.is_leader()) {
    log_info("shards of {}: {}; images that a host lacks come from the others as they are needed",
             split, join(who, ", "));
  }
  const auto mine = static_cast<std::size_t>(places_.mine);
  const bool leads = places_.leader(mine) == world.rank();
  const std::vector<std::string> meetings = gather_results(world, [&]() -> std::string {
    if (!leads) return "";
    start_server(world);
    return server_->meeting();
  });
  gather_results(world, [&]() -> std::string {
    if (!lacks_any(mine)) return "";
    if (leads) {
      start_fetcher(meetings, config, split);
    } else {
      leader_meeting_ = meetings[places_.leader(mine)];
    }
    return "";
  });
}

void SharedImages::start_server(World& world) {
  server_ = std::make_unique<PieceServer>(
      address_of(world), world.environment().shared_secret(),
      [this](const DataPiece& piece, std::vector<std::byte>& space) -> std::span<const std::byte> {
        const auto image = static_cast<int64_t>(piece.at);
        if (image < 0 || image >= size()) throw DataError("there is no image {}", image);
        if (shards_->is_here(image)) return shards_->bytes(image, space);
        ImageFetcher* fetcher = serving_;
        if (fetcher == nullptr) throw DataError("{} is not here", name(image));
        return fetcher->get(image, space, {});
      });
}

void SharedImages::start_fetcher(const std::vector<std::string>& meetings,
                                 const ImagesConfig& config, const std::string& split) {
  const auto mine = static_cast<std::size_t>(places_.mine);
  ImageFetcher::Sources sources{.secret = world_->environment().shared_secret()};
  std::vector<int> peer_of(places_.ranks.size(), -1);
  int64_t bytes = 0;
  std::set<std::string> from;
  for (std::size_t s = 0; s < holders_.size(); ++s) {
    sources.holders.emplace_back();
    if (!lacks(mine, s)) continue;
    bytes += shards_->shard_bytes(s);
    for (int place : holders_[s]) {
      int& peer = peer_of[place];
      if (peer < 0) {
        peer = static_cast<int>(sources.peers.size());
        sources.peers.push_back({hosts_[place], meetings[places_.leader(place)]});
      }
      sources.holders.back().push_back(peer);
      from.insert(hosts_[place]);
    }
  }
  const fs::path folder =
      config.cache.empty() ? fs::path(config.data) / kCacheFolder : fs::path(config.cache);
  auto cache = std::make_unique<ImageCache>(folder, split, *shards_);
  log_info("{} of images of {} are not here: they come from {} and go to {}", readable(bytes),
           split, join({from.begin(), from.end()}, ", "), cache->folder().string());
  fetcher_ = std::make_unique<ImageFetcher>(*shards_, std::move(cache), std::move(sources),
                                            config.cache_bytes);
  serving_ = fetcher_.get();
}

std::vector<int> SharedImages::neighbours() const {
  if (places_.ranks.empty()) return {};
  return places_.ranks[static_cast<std::size_t>(places_.mine)];
}

void SharedImages::expect(std::span<const int64_t> images) const {
  if (fetcher_) fetcher_->expect(images);
}

// Throws when another rank is lost, so that nobody waits for data of the dead.
void SharedImages::look() const {
  if (const auto verdict = world_->heartbeat().verdict()) {
    throw verdict_error(*verdict, fmt::format("rank {} of {}", world_->rank(), world_->size()),
                        "waiting for images of another host");
  }
}

std::span<const std::byte> SharedImages::bytes(int64_t index, std::vector<std::byte>& space) const {
  if (fetcher_) {
    return fetcher_->get(index, space,
                         {.look = [this] { look(); },
                          .lost =
                              [this](const std::string& why) {
                                if (world_->heartbeat().ask(why)) look();
                              }});
  }
  if (leader_meeting_.empty() || shards_->is_here(index)) return set_->bytes(index, space);
  return from_leader(index, space);
}

// Asks the first rank of this place, on a connection that no other thread uses meanwhile. It ends
// with that rank.
std::span<const std::byte> SharedImages::from_leader(int64_t index,
                                                     std::vector<std::byte>& space) const {
  std::unique_ptr<PieceClient> client;
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      client = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  const std::string host = hosts_[static_cast<std::size_t>(places_.mine)];
  const DataPiece piece{.bytes = shards_->place(index).bytes, .at = static_cast<uint64_t>(index)};
  std::string refusal;
  try {
    if (!client) {
      client = std::make_unique<PieceClient>(
          leader_meeting_, PieceClient::Options{.host = host,
                                                .secret = world_->environment().shared_secret(),
                                                .stopping = stopping_});
    }
    client->ask(piece);
    refusal = client->receive(piece, space);
  } catch (const MachineError& error) {
    if (world_->heartbeat().ask(error.what())) look();
    throw;
  }
  if (!refusal.empty()) throw MachineError("{}", refusal);
  std::lock_guard lock(mutex_);
  idle_.push_back(std::move(client));
  return space;
}

ImagePlaces SharedImages::divide() const {
  ImagePlaces out;
  if (shards_ == nullptr) {
    if (!places_.ranks.empty()) {
      ConfigError error("images.share: \"machine\" needs shards, {} is in a folder of files",
                        name(0));
      error.set_advice("lockstep prepare images FOLDER --out SHARDS");
      throw error;
    }
    out.of_rank = {0};
    out.images.emplace_back();
    for (int64_t i = 0; i < size(); ++i) out.images[0].push_back(static_cast<int32_t>(i));
    return out;
  }
  std::vector<int64_t> images(holders_.size(), 0);
  for (int64_t i = 0; i < size(); ++i) ++images[shards_->place(i).shard];
  std::vector<int> ranks;
  for (const auto& place : places_.ranks) ranks.push_back(static_cast<int>(place.size()));
  const std::vector<int> assigned = assign_shards(holders_, images, ranks);
  out.images.resize(places_.ranks.size());
  for (int64_t i = 0; i < size(); ++i) {
    out.images[assigned[shards_->place(i).shard]].push_back(static_cast<int32_t>(i));
  }
  out.of_rank.resize(static_cast<std::size_t>(world_->size()));
  for (std::size_t p = 0; p < places_.ranks.size(); ++p) {
    for (int rank : places_.ranks[p]) out.of_rank[rank] = static_cast<int>(p);
    if (out.images[p].empty()) {
      ConfigError error("images.share: \"machine\", but {} has no shard of its own to draw from",
                        hosts_[p]);
      error.set_advice("lockstep cluster setup --copy-share brings shards to every host");
      throw error;
    }
  }
  return out;
}

}  // namespace lockstep
