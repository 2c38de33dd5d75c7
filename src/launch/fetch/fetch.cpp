#include "launch/fetch/fetch.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/digest.h"
#include "base/text.h"
#include "launch/fetch/fetch_state.h"
#include "launch/fetch/fetch_transfer.h"
#include "launch/fetch/run_publisher.h"

namespace lockstep {

namespace {

constexpr const char* kDone = "/DONE";
constexpr const char* kState = "/state.json";
constexpr int kMostRounds = 8;  // while files change under our hands

// What other commands make of a run, and requests to a live one, are not of the run.
bool is_of_run(const std::string& path) {
  return !path.starts_with("report/") && !path.starts_with("checkpoints/") && path != ".rank0" &&
         path != "lock" && path != "trace/timeline.json" && path != "trace/request.json";
}

class RunFetch {
 public:
  explicit RunFetch(const RunFetchOptions& options)
      : options_(options), transfer_(options.hosts, options.remote, options.folders) {
    transfer_.on_progress = options.on_progress;
  }

  FetchSummary finish();

 private:
  void note(const std::string& line) const {
    if (options_.on_note) options_.on_note(line);
  }
  void look();
  bool wants(const std::string& path, const RunListing& listing) const;
  bool bring_files();
  bool bring_checkpoints();
  std::vector<HeldCheckpoint> held_checkpoints();
  void add_checkpoint(const std::string& host, int64_t step, std::vector<HeldCheckpoint>& out);
  bool is_here(const std::vector<HeldCheckpoint>& held, int64_t step) const;
  void put_checkpoint(const HeldCheckpoint& checkpoint);
  void leave_out(const HeldCheckpoint& checkpoint, const std::string& why);
  std::vector<std::string> hosts_by_precedence();
  void tell_hosts();
  void report_failures();

  const RunFetchOptions& options_;
  FetchTransfer transfer_;
  std::optional<FetchState> state_;
  std::set<std::pair<std::string, int64_t>> damaged_;  // checkpoints of hosts
  std::set<int64_t> here_;  // the checkpoints that were chosen, as far as they are here
  FetchSummary summary_;
};

FetchSummary RunFetch::finish() {
  bool again = true;
  for (int round = 0; again && round < kMostRounds; ++round) {
    look();
    again = bring_files();
    if (bring_checkpoints()) again = true;
  }
  std::vector<std::string> names;
  for (const FetchSeat& seat : transfer_.seats()) names.push_back(seat.name());
  RunPublisher publisher(*state_, options_.to, names, options_.launch_log);
  summary_.written_files = publisher.publish();
  summary_.moved_bytes = transfer_.moved_bytes();
  for (int64_t step : here_) summary_.checkpoints.push_back(fmt::format("step_{}", step));
  state_->save();
  tell_hosts();
  const std::vector<std::string> places = publisher.hosts_of_rank0();
  if (places.size() > 1) {
    note(fmt::format("rank 0 was on {}: their attempts are joined", join(places, ", then on ")));
  }
  report_failures();
  if (again) {
    MachineError error("{}: its files went on changing while they were read",
                       options_.folders.front());
    error.set_advice("the same command again");
    throw error;
  }
  return summary_;
}

// Lists what there is. The folder here is made once there is something to bring.
void RunFetch::look() {
  transfer_.list();
  const bool any = std::any_of(transfer_.seats().begin(), transfer_.seats().end(),
                               [](const FetchSeat& seat) { return seat.gives(); });
  if (!any && state_) return;  // the last host went meanwhile; what came of it counts
  if (!any) {
    report_failures();
    std::vector<std::string> names;
    for (const FetchSeat& seat : transfer_.seats()) names.push_back(seat.name());
    ConfigError error("{}: no such folder on {}", options_.folders.front(), join(names, ", "));
    error.set_advice("the folder that the run was started with; --cwd if it was launched with it");
    throw error;
  }
  if (!state_) state_.emplace(options_.to, options_.folders.front());
  for (const FetchSeat& seat : transfer_.seats()) {
    if (seat.gives()) state_->set_zone(seat.name(), seat.listing.zone_seconds);
  }
}

bool RunFetch::wants(const std::string& path, const RunListing& listing) const {
  if (options_.logs_only) return path.starts_with("logs/") || path == "launch.jsonl";
  if (is_of_run(path)) return true;
  if (options_.checkpoints == CheckpointChoice::kNone) return false;
  const std::optional<int64_t> step = step_in_path(path);
  if (!step) return false;
  const std::string folder = fmt::format("checkpoints/step_{}", *step);
  return listing.has(folder + kDone) && (path == folder + kDone || path == folder + kState);
}

// Returns whether something changed while it was read, so that another look is needed.
bool RunFetch::bring_files() {
  FetchTransfer::Wishes wishes;
  for (const FetchSeat& seat : transfer_.seats()) {
    if (!seat.gives()) continue;
    for (const auto& [path, facts] : seat.listing.files) {
      if (!wants(path, seat.listing)) continue;
      const KeptFile* kept = state_->kept(seat.name(), path);
      if (kept != nullptr && kept->facts == facts) continue;
      FileWish wish{.path = path, .target = state_->mirror(seat.name(), path)};
      wish.from_start = kept != nullptr && kept->facts.inode != facts.inode;
      if (wish.from_start) state_->forget(seat.name(), path);
      wishes[seat.name()].push_back(std::move(wish));
    }
  }
  bool again = false;
  transfer_.move(wishes, options_.to,
                 [&](const std::string& host, const FileWish& wish, const FileAnswer& answer) {
                   if (answer.state == FileAnswer::State::kWhole) {
                     state_->keep(host, wish.path, {answer.facts, answer.sha256});
                   } else if (answer.state == FileAnswer::State::kChanged) {
                     state_->forget(host, wish.path);
                     again = true;
                   }
                 });
  state_->save();
  return again;
}

// The hosts that give files, those first on which rank 0 was last.
std::vector<std::string> RunFetch::hosts_by_precedence() {
  std::vector<std::string> names;
  for (const FetchSeat& seat : transfer_.seats()) {
    if (seat.gives()) names.push_back(seat.name());
  }
  return RunPublisher(*state_, options_.to, std::move(names), {}).hosts();
}

void RunFetch::leave_out(const HeldCheckpoint& checkpoint, const std::string& why) {
  damaged_.emplace(checkpoint.host, checkpoint.step);
  note(fmt::format("{}: {} is passed over: {}", checkpoint.host, checkpoint.name(), why));
}

void RunFetch::add_checkpoint(const std::string& host, int64_t step,
                              std::vector<HeldCheckpoint>& out) {
  HeldCheckpoint one{.host = host, .step = step};
  const KeptFile* done = state_->kept(host, one.name() + kDone);
  const KeptFile* state = state_->kept(host, one.name() + kState);
  if (damaged_.contains({host, step}) || done == nullptr || state == nullptr) return;
  one.done_sha256 = done->sha256;
  try {
    one.files = read_done(read_file(state_->mirror(host, one.name() + kDone)));
    one.best_steps = read_best_steps(read_file(state_->mirror(host, one.name() + kState)));
  } catch (const DataError& error) {
    return leave_out(one, error.what());
  }
  const RunListing& listing = transfer_.seat(host).listing;
  for (const DoneFile& file : one.files) {
    const auto found = listing.files.find(one.name() + "/" + file.name);
    if (found == listing.files.end()) return leave_out(one, file.name + " is missing");
    if (found->second.bytes != file.bytes) {
      return leave_out(one, fmt::format("{} has {} bytes, DONE says {}", file.name,
                                        with_commas(found->second.bytes), with_commas(file.bytes)));
    }
  }
  out.push_back(std::move(one));
}

std::vector<HeldCheckpoint> RunFetch::held_checkpoints() {
  std::vector<HeldCheckpoint> out;
  for (const std::string& host : hosts_by_precedence()) {
    for (const auto& [path, facts] : transfer_.seat(host).listing.files) {
      const std::optional<int64_t> step = step_in_path(path);
      if (step && path.ends_with(kDone)) add_checkpoint(host, *step, out);
    }
  }
  return out;
}

// Whether the folder here has the checkpoint as one of the hosts does.
bool RunFetch::is_here(const std::vector<HeldCheckpoint>& held, int64_t step) const {
  const fs::path done = options_.to / (HeldCheckpoint{.step = step}.name() + kDone);
  if (!fs::exists(done)) return false;
  const std::string sha256 = sha256_of_file(done);
  return std::any_of(held.begin(), held.end(), [&](const HeldCheckpoint& one) {
    return one.step == step && one.done_sha256 == sha256;
  });
}

// Returns whether another look is needed.
bool RunFetch::bring_checkpoints() {
  here_.clear();
  if (options_.logs_only || options_.checkpoints == CheckpointChoice::kNone) return false;
  const std::vector<HeldCheckpoint> held = held_checkpoints();
  FetchTransfer::Wishes wishes;
  std::vector<HeldCheckpoint> wanted;
  for (int64_t step : choose_steps(held, options_.checkpoints)) {
    if (is_here(held, step)) {
      here_.insert(step);
      continue;
    }
    const HeldCheckpoint& one = *std::find_if(
        held.begin(), held.end(), [&](const HeldCheckpoint& h) { return h.step == step; });
    state_->require_ours(one.name() + kDone);
    for (const DoneFile& file : one.files) {
      wishes[one.host].push_back({.path = one.name() + "/" + file.name,
                                  .target = options_.to / (one.name() + ".part") / file.name,
                                  .sha256 = file.sha256});
    }
    wanted.push_back(one);
  }
  std::map<std::string, std::size_t> whole;  // files, by host and checkpoint
  transfer_.move(wishes, options_.to,
                 [&](const std::string& host, const FileWish& wish, const FileAnswer& answer) {
                   const std::string folder = wish.path.substr(0, wish.path.rfind('/'));
                   if (answer.state == FileAnswer::State::kWhole) whole[host + " " + folder] += 1;
                   const bool other =
                       answer.state == FileAnswer::State::kChanged && answer.sha256 != wish.sha256;
                   if (!other) return;
                   leave_out({.host = host, .step = *step_in_path(wish.path)},
                             wish.path.substr(folder.size() + 1) +
                                 " has another hash than DONE says: its bytes changed");
                 });
  bool again = false;
  for (const HeldCheckpoint& one : wanted) {
    if (whole[one.host + " " + one.name()] == one.files.size()) {
      put_checkpoint(one);
    } else {
      again = true;
    }
  }
  return again;
}

void RunFetch::put_checkpoint(const HeldCheckpoint& checkpoint) {
  const fs::path target = options_.to / checkpoint.name();
  fs::path aside = target;
  aside += ".part";
  write_file(aside / "DONE", read_file(state_->mirror(checkpoint.host, checkpoint.name() + kDone)));
  sync_folder(aside);
  std::set<std::string> names = {"DONE"};
  for (const DoneFile& file : checkpoint.files) names.insert(file.name);
  for (const fs::directory_entry& entry : fs::directory_iterator(aside)) {
    // Of a call that broke off, while the checkpoint was another one.
    if (!names.contains(entry.path().filename())) fs::remove_all(entry.path());
  }
  state_->promise(checkpoint.name() + kDone, checkpoint.done_sha256);
  std::error_code failed;
  fs::remove_all(target, failed);  // another one of that step, which an earlier call brought
  if (!failed) fs::rename(aside, target, failed);
  if (failed)
    throw MachineError("{}: cannot be put in place: {}", target.string(), failed.message());
  sync_folder(target.parent_path());
  state_->give(checkpoint.name() + kDone, checkpoint.done_sha256);
  state_->save();
  here_.insert(checkpoint.step);
}

void RunFetch::tell_hosts() {
  for (const FetchSeat& seat : transfer_.seats()) {
    const int64_t bytes = transfer_.moved_bytes_of(seat.name());
    const std::string moved = short_bytes(static_cast<double>(bytes)) + " moved";
    if (seat.failure) continue;
    if (!seat.same_folder_as.empty()) {
      note(fmt::format("{}: sees the folder of {}", seat.name(), seat.same_folder_as));
    } else if (!seat.listing.exists) {
      note(fmt::format("{}: has no such folder", seat.name()));
    } else {
      note(fmt::format("{}: {} files, {}", seat.name(), seat.listing.files.size(),
                       bytes == 0 ? "nothing new" : moved));
    }
  }
}

void RunFetch::report_failures() {
  std::vector<std::string> texts;
  for (const FetchSeat& seat : transfer_.seats()) {
    if (seat.failure) texts.push_back(seat.failure->describe());
  }
  if (texts.empty()) return;
  MachineError error("{} of {} hosts did not give what they have\n{}", texts.size(),
                     transfer_.seats().size(), join(texts, "\n"));
  if (state_) {
    error.set_advice(fmt::format("what the others have is in {}; the same command again goes on",
                                 options_.to.string()));
  }
  throw error;
}

}  // namespace

FetchSummary fetch_run(const RunFetchOptions& options) { return RunFetch(options).finish(); }

}  // namespace lockstep
