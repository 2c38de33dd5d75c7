#include "launch/fetch/fetch_transfer.h"

#include <algorithm>

#include "base/text.h"
#include "launch/fetch/fetch_scripts.h"

namespace lockstep {

namespace {

constexpr std::chrono::seconds kPatience{120};  // for a list

// Bytes that the hosts are to send.
int64_t bytes_to_come(const std::vector<FileWish>& wishes, const RunListing& listing) {
  int64_t out = 0;
  for (const FileWish& wish : wishes) {
    auto found = listing.files.find(wish.path);
    if (found == listing.files.end()) continue;
    std::error_code none;
    const auto here = static_cast<int64_t>(fs::file_size(wish.target, none));
    const bool goes_on = !none && !wish.from_start && here <= found->second.bytes;
    out += found->second.bytes - (goes_on ? here : 0);
  }
  return out;
}

void require_room(const fs::path& to, int64_t bytes) {
  std::error_code none;
  const fs::space_info space = fs::space(to, none);
  if (none || space.available > static_cast<std::uintmax_t>(bytes)) return;
  MachineError error("{}: its disk has {} free, {} are needed", to.string(),
                     short_bytes(static_cast<double>(space.available)),
                     short_bytes(static_cast<double>(bytes)));
  error.set_advice("--checkpoints none, or --to a folder of another disk");
  throw error;
}

// Without any of the folders it prints "none".
std::string enter_run(const std::vector<std::string>& folders) {
  std::string text = detail::kEnterFolder;
  for (const std::string& folder : folders) text += "enter " + shell_quote(folder) + " || ";
  return text + "{ echo none; exit 0; }\n";
}

}  // namespace

FetchTransfer::FetchTransfer(const HostList& hosts, RemoteOptions remote,
                             const std::vector<std::string>& folders)
    : remote_(std::move(remote)), enter_(enter_run(folders)) {
  for (const Host& host : hosts.hosts) seats_.emplace_back().host = &host;
}

FetchSeat& FetchTransfer::seat(const std::string& host) {
  for (FetchSeat& seat : seats_) {
    if (seat.name() == host) return seat;
  }
  throw std::logic_error("no host " + host);
}

int64_t FetchTransfer::moved_bytes_of(const std::string& host) const {
  auto found = moved_of_.find(host);
  return found == moved_of_.end() ? 0 : found->second;
}

void FetchTransfer::list() {
  const std::string text = enter_ + detail::kListRun;
  std::vector<RemoteJob> jobs;
  std::vector<FetchSeat*> asked;
  for (FetchSeat& seat : seats_) {
    if (seat.failure) continue;
    jobs.push_back({.host = seat.host, .shell_text = text});
    asked.push_back(&seat);
  }
  const std::vector<RemoteResult> results = run_jobs(jobs, remote_, {.limit = kPatience});
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const RemoteResult& result = results[i];
    if (result.status == 0) {
      asked[i]->listing = read_run_listing(result.output);
    } else {
      asked[i]->failure = std::make_unique<MachineError>(
          remote_error(*asked[i]->host, result.status, result.error));
    }
  }
  find_shared_folders();
}

// Hosts of one file system show the same configuration: what each would send is one and the same.
void FetchTransfer::find_shared_folders() {
  const auto facts_of = [](const FetchSeat& seat, const char* path) {
    auto found = seat.listing.files.find(path);
    return found == seat.listing.files.end() ? FileFacts{} : found->second;
  };
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    seats_[i].same_folder_as.clear();
    const FileFacts config = facts_of(seats_[i], "config.toml");
    const FileFacts version = facts_of(seats_[i], "version.txt");
    if (config == FileFacts{} || version == FileFacts{}) continue;
    for (std::size_t j = 0; j < i; ++j) {
      if (!seats_[j].gives() || facts_of(seats_[j], "config.toml") != config) continue;
      if (facts_of(seats_[j], "version.txt") != version) continue;
      seats_[i].same_folder_as = seats_[j].name();
      break;
    }
  }
}

void FetchTransfer::move(const Wishes& wishes, const fs::path& to, const OnAnswer& on_answer) {
  TemporaryFolder files;
  std::vector<RemoteJob> jobs;
  std::vector<FetchSeat*> asked;
  std::vector<std::unique_ptr<HostStream>> streams;
  int64_t all = 0;
  for (const auto& [host, wanted] : wishes) {
    if (wanted.empty()) continue;
    FetchSeat& of = seat(host);
    all += bytes_to_come(wanted, of.listing);
    streams.push_back(std::make_unique<HostStream>(wanted));
    HostStream& stream = *streams.back();
    stream.on_answer = [&, name = host](std::size_t wish) {
      on_answer(name, stream.wishes()[wish], stream.answers()[wish]);
    };
    const fs::path requests = files.path() / std::to_string(jobs.size());
    write_file(requests, stream.requests());
    jobs.push_back({.host = of.host,
                    .shell_text = enter_ + detail::kSendFiles,
                    .feeder = {"cat", requests.string()}});
    asked.push_back(&of);
  }
  require_room(to, all);
  RemoteRun run;
  run.on_output = [&](std::size_t job, Stream kind, std::string_view bytes) {
    if (kind != kStandardOutput || asked[job]->failure) return;
    const int64_t before = streams[job]->moved_bytes();
    try {
      streams[job]->take(bytes);
    } catch (const DataError& error) {
      asked[job]->failure =
          std::make_unique<MachineError>(MachineError("{}: {}", asked[job]->name(), error.what()));
    }
    moved_ += streams[job]->moved_bytes() - before;
    moved_of_[asked[job]->name()] += streams[job]->moved_bytes() - before;
    if (on_progress) on_progress(moved_, all);
  };
  const std::vector<RemoteResult> results = run_jobs(jobs, remote_, run);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (results[i].status == 0 || asked[i]->failure) continue;
    asked[i]->failure = std::make_unique<MachineError>(
        remote_error(*asked[i]->host, results[i].status, results[i].error));
  }
}

}  // namespace lockstep
