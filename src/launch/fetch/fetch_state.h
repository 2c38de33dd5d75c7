// What earlier calls of a fetch left in DIR/.fetch:
//
//   .fetch/hosts/NAME/...   the host's own files of the run but for checkpoints, as far as they
//   came .fetch/state.json       of which of them how much is whole and verified; what DIR got of
//   them .fetch/lock             held while a fetch goes on
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/descriptor.h"
#include "base/file.h"
#include "launch/fetch/run_listing.h"

namespace lockstep {

// A host's file of which the first facts.bytes are here and have this digest.
struct KeptFile {
  FileFacts facts;
  std::string sha256;
};

// A file of DIR that a fetch wrote.
struct GivenFile {
  int64_t bytes = 0, changed_ns = 0;  // as it was left
  std::string source;                 // of which files of hosts it was made
};

class FetchState {
 public:
  // `source` says which run of which hosts DIR is for. Throws ConfigError when DIR holds another
  // one, a run that no fetch wrote, or when another fetch goes on there; MachineError when it
  // cannot be made.
  FetchState(fs::path to, const std::string& source);
  ~FetchState();  // saves, and only logs when that fails
  FetchState(const FetchState&) = delete;
  FetchState& operator=(const FetchState&) = delete;

  fs::path mirror(const std::string& host, const std::string& path) const;
  const KeptFile* kept(const std::string& host, const std::string& path) const;  // null: none
  void keep(const std::string& host, const std::string& path, KeptFile file);
  void forget(const std::string& host, const std::string& path);
  // The host's files by path.
  const std::map<std::string, KeptFile>& files_of(const std::string& host) const;
  // The host's local time minus UTC, in seconds.
  double zone_of(const std::string& host) const;
  void set_zone(const std::string& host, double seconds) { zones_[host] = seconds; }

  // Whether DIR/path is what `source` gave it.
  bool is_given(const std::string& path, const std::string& source) const;
  // Throws ConfigError when DIR/path is there and not as a fetch left it, or promised to.
  void require_ours(const std::string& path) const;
  // Saves what DIR/path is about to become, so that it is known again after a fetch that ended
  // before give().
  void promise(const std::string& path, const std::string& sha256);
  void give(const std::string& path, const std::string& source);  // call it once DIR has the file
  void save() const;

 private:
  void lock();
  void load(const std::string& source);

  fs::path to_;
  std::string source_;
  Descriptor lock_;
  std::map<std::string, std::map<std::string, KeptFile>> hosts_;
  std::map<std::string, GivenFile> given_;
  std::map<std::string, std::string> promised_;  // digests
  std::map<std::string, double> zones_;
};

}  // namespace lockstep
