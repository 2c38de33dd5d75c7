// Lists and moves files of a run's hosts, all hosts at once. A host that fails takes no further
// part; the others go on.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "launch/fetch/host_stream.h"
#include "launch/hosts/remote.h"

namespace lockstep {

struct FetchSeat {
  const Host* host = nullptr;
  RunListing listing;
  std::string same_folder_as;  // a host before it, whose folder this host sees too
  std::unique_ptr<MachineError> failure;

  const std::string& name() const { return host->name; }
  // Whether the host is to be asked for files.
  bool gives() const { return !failure && listing.exists && same_folder_as.empty(); }
};

class FetchTransfer {
 public:
  // `folders` are where the run may be on a host, absolute or "~/...": the first that is there
  // counts. `hosts` must outlive it.
  FetchTransfer(const HostList& hosts, RemoteOptions remote,
                const std::vector<std::string>& folders);

  std::vector<FetchSeat>& seats() { return seats_; }
  FetchSeat& seat(const std::string& host);
  // Asks every host that has not failed for its list of files.
  void list();

  using Wishes = std::map<std::string, std::vector<FileWish>>;  // by host
  using OnAnswer =
      std::function<void(const std::string& host, const FileWish& wish, const FileAnswer& answer)>;
  // Moves the files to their places. Throws MachineError when the disk here cannot take them.
  void move(const Wishes& wishes, const fs::path& to, const OnAnswer& on_answer);

  int64_t moved_bytes() const { return moved_; }
  int64_t moved_bytes_of(const std::string& host) const;
  // Called with the bytes moved and to be moved by the transfer under way.
  std::function<void(int64_t moved, int64_t all)> on_progress;

 private:
  void find_shared_folders();

  RemoteOptions remote_;
  std::string enter_;  // shell text that goes to the folder
  std::vector<FetchSeat> seats_;
  std::map<std::string, int64_t> moved_of_;
  int64_t moved_ = 0;
};

}  // namespace lockstep
