#include "batches/shared_files.h"

#include <algorithm>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <optional>

#include "base/digest.h"
#include "base/error.h"
#include "base/log.h"
#include "base/output_file.h"
#include "base/text.h"
#include "batches/place.h"
#include "dist/pieces/piece_client.h"
#include "dist/pieces/piece_server.h"

namespace lockstep {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint32_t kPieceBytes = 1 << 20;
constexpr std::size_t kFilesAskedAhead = 8;
constexpr milliseconds kFileSilence{20'000};
constexpr seconds kReport{5};  // the ranks meet so often while files arrive: none seems to hang

// Who has which of the files.
struct Holdings {
  Places places;
  std::vector<std::string> hosts;         // by place
  std::vector<std::vector<int>> holders;  // by file: the places that have it

  // Whether another place has the file, which this one lacks.
  bool comes(std::size_t file) const {
    const auto& of = holders[file];
    return !of.empty() && std::find(of.begin(), of.end(), places.mine) == of.end();
  }
};

Holdings find_holdings(World& world, const fs::path& folder,
                       const std::function<std::vector<FileRecord>()>& list,
                       std::vector<FileRecord>& files) {
  // Lines: place, host, hash of the list, and a 1 or 0 for each file.
  const std::vector<std::string> texts = gather_results(world, [&] {
    files = list();
    std::string here, records;
    for (const FileRecord& file : files) {
      here += fs::exists(folder / file.name) ? '1' : '0';
      records += fmt::format("{} {} {}\n", file.name, file.bytes, file.sha256);
    }
    return join({place_key(world, folder), host_of(world),
                 sha256_hex(std::as_bytes(std::span(records))), here},
                "\n");
  });
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string> keys;
  for (const std::string& text : texts) {
    lines.push_back(split(text, '\n'));
    keys.push_back(lines.back()[0]);
  }
  Holdings out{.places = find_places(keys, world.rank()), .hosts = {}, .holders = {}};
  out.holders.resize(files.size());
  const auto places = out.places.ranks.size();
  bool complete = true, same = true;
  for (std::size_t p = 0; p < places; ++p) {
    const std::vector<std::string>& of = lines[out.places.leader(p)];
    out.hosts.push_back(of[1]);
    complete = complete && of[3].find('0') == std::string::npos;
    same = same && of[2] == lines[0][2];
    for (std::size_t f = 0; same && f < files.size(); ++f) {
      if (of[3][f] == '1') out.holders[f].push_back(static_cast<int>(p));
    }
  }
  if (!same && !complete) {
    throw ConfigError("{} differs between the hosts {}: one cannot send another what it lacks",
                      (folder / kManifestName).string(), join(out.hosts, ", "));
  }
  // One place alone gets nothing; what differs is named by the comparison of all data.
  if (complete || places == 1) out.holders.clear();
  for (std::size_t f = 0; f < out.holders.size(); ++f) {
    if (!out.holders[f].empty()) continue;
    log_info("{}: on none of the hosts {}", (folder / files[f].name).string(),
             join(out.hosts, ", "));  // texts that nobody needs may have been removed
  }
  return out;
}

// Opens each file at the first request for it.
class ServedFiles {
 public:
  ServedFiles(const fs::path& folder, const std::vector<FileRecord>& files)
      : folder_(folder), files_(files), opened_(files.size()) {}

  std::span<const std::byte> piece(const DataPiece& piece) {
    if (piece.file >= files_.size()) throw DataError("there is no file {}", piece.file);
    std::span<const std::byte> bytes;
    {
      std::lock_guard lock(mutex_);
      auto& file = opened_[piece.file];
      if (!file) file.emplace(folder_ / files_[piece.file].name);
      bytes = file->bytes();
    }
    if (piece.at > bytes.size() || piece.bytes > bytes.size() - piece.at) {
      throw DataError("{} has {} bytes there, {} says {}", files_[piece.file].name, bytes.size(),
                      kManifestName, files_[piece.file].bytes);
    }
    return bytes.subspan(piece.at, piece.bytes);
  }

 private:
  fs::path folder_;
  const std::vector<FileRecord>& files_;
  std::mutex mutex_;
  std::vector<std::optional<MappedFile>> opened_;
};

// Brings files on a thread of its own.
class FileFetch {
 public:
  FileFetch(const fs::path& folder, const std::vector<FileRecord>& files, const Holdings& holdings,
            const std::vector<std::string>& meetings, const Token& secret)
      : folder_(folder), files_(files), holdings_(holdings), meetings_(meetings), secret_(secret) {
    done_ = std::async(std::launch::async, [this] { fetch_all(); });
  }
  ~FileFetch() { stopping_ = true; }  // the future's destructor waits

  // Waits for a while; returns whether all is there. Throws what the thread threw.
  bool wait(seconds limit) {
    if (!done_.valid()) return true;
    if (done_.wait_for(limit) != std::future_status::ready) return false;
    done_.get();
    return true;
  }

 private:
  void fetch_all() {
    std::uintmax_t needed = 0;
    for (std::size_t f = 0; f < files_.size(); ++f) {
      if (holdings_.comes(f)) needed += static_cast<std::uintmax_t>(files_[f].bytes);
    }
    std::error_code unknown;
    const fs::space_info disk = fs::space(folder_, unknown);
    if (!unknown && disk.available < needed) {
      throw MachineError("{}: the files that other hosts send take {}, its disk has room for {}",
                         folder_.string(), short_bytes(static_cast<double>(needed)),
                         short_bytes(static_cast<double>(disk.available)));
    }
    for (std::size_t f = 0; f < files_.size(); ++f) {
      if (holdings_.comes(f)) fetch(f);
    }
  }

  // Asks one holder after the other; who is asked first differs from place to place.
  void fetch(std::size_t file) {
    const std::vector<int>& holders = holdings_.holders[file];
    std::optional<Error> failure;
    for (std::size_t i = 0; i < holders.size(); ++i) {
      const auto first = static_cast<std::size_t>(holdings_.places.mine);
      const int place = holders[(i + first) % holders.size()];
      try {
        return fetch_from(file, place);
      } catch (const Error& error) {
        if (failure || i + 1 < holders.size()) log_warning("{}", error.what());
        failure = error;
      }
    }
    throw Error(*failure);
  }

  void fetch_from(std::size_t file, int place) {
    const FileRecord& record = files_[file];
    const std::string& host = holdings_.hosts[place];
    PieceClient client(
        meetings_[holdings_.places.leader(place)],
        {.host = host, .secret = secret_, .silence = kFileSilence, .stopping = stopping_});
    OutputFile out(folder_ / record.name);
    Digest hash = Digest::sha256();
    std::deque<DataPiece> asked;
    std::vector<std::byte> bytes;
    const auto size = static_cast<uint64_t>(record.bytes);
    for (uint64_t next = 0; next < size || !asked.empty();) {
      while (next < size && asked.size() < kFilesAskedAhead) {
        const auto count = static_cast<uint32_t>(std::min<uint64_t>(kPieceBytes, size - next));
        asked.push_back({static_cast<uint32_t>(file), count, next});
        client.ask(asked.back());
        next += count;
      }
      const std::string refusal = client.receive(asked.front(), bytes);
      if (!refusal.empty()) throw DataError("{}: {}", host, refusal);
      asked.pop_front();
      out.write(bytes.data(), bytes.size());
      hash.update(bytes.data(), bytes.size());
    }
    if (hash.hex() != record.sha256) {
      DataError error("{} on {} differs from its SHA-256 in {}", record.name, host, kManifestName);
      error.set_advice("the file there changed or is damaged: bring it there again");
      throw error;
    }
    out.finish();
    log_info("{} came from {}, {}", (folder_ / record.name).string(), host,
             short_bytes(static_cast<double>(record.bytes)));
  }

  fs::path folder_;
  const std::vector<FileRecord>& files_;
  const Holdings& holdings_;
  const std::vector<std::string>& meetings_;
  const Token secret_;
  std::atomic<bool> stopping_ = false;
  std::future<void> done_;  // last: its destructor waits for the thread
};

}  // namespace

void fetch_missing_files(World* world, const fs::path& folder,
                         const std::function<std::vector<FileRecord>()>& list) {
  if (world == nullptr || world->size() == 1) return;
  std::vector<FileRecord> files;
  const Holdings holdings = find_holdings(*world, folder, list, files);
  if (holdings.holders.empty()) return;
  const auto mine = static_cast<std::size_t>(holdings.places.mine);
  const bool leads = holdings.places.leader(mine) == world->rank();
  ServedFiles served(folder, files);
  std::unique_ptr<PieceServer> server;
  const std::vector<std::string> meetings = gather_results(*world, [&]() -> std::string {
    if (!leads) return "";
    server = std::make_unique<PieceServer>(
        address_of(*world), world->environment().shared_secret(),
        [&](const DataPiece& piece, std::vector<std::byte>&) { return served.piece(piece); });
    return server->meeting();
  });
  std::unique_ptr<FileFetch> fetch;
  if (leads)
    fetch = std::make_unique<FileFetch>(folder, files, holdings, meetings,
                                        world->environment().shared_secret());
  for (bool all = false; !all;) {
    const std::vector<std::string> states = gather_results(*world, [&]() -> std::string {
      return fetch == nullptr || fetch->wait(kReport) ? "done" : "";
    });
    all = std::all_of(states.begin(), states.end(),
                      [](const std::string& state) { return state == "done"; });
  }
}

}  // namespace lockstep
