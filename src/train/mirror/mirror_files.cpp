#include "train/mirror/mirror_files.h"

#include <algorithm>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "train/mirror/mirror_keys.h"

namespace lockstep {

namespace {

// Notes what of an older checkpoint of that step is as the new one has it, and removes its DONE:
// what is mixed must not look whole. Returns whether the whole is the same.
bool take_stock(ObjectStore& store, const std::string& key, const std::string& done,
                const std::map<std::string, DoneFile>& files,
                std::map<std::string, std::string>& sent) {
  const std::optional<std::string> there = object_text(store, key + "/DONE");
  if (!there) return false;
  if (*there == done) return true;
  try {
    for (const auto& [name, file] : parse_done(*there, key)) {
      const auto mine = files.find(name);
      if (mine != files.end() && mine->second.sha256 == file.sha256) sent[name] = file.sha256;
    }
  } catch (const DataError&) {  // all of it is copied
  }
  store.remove(key + "/DONE");
  return false;
}

// Compares what the mirror lists with what belongs there; removes what does not. Throws
// MachineError when something is missing or has another size; `sent` forgets it.
void check_list(ObjectStore& store, const std::string& key,
                const std::map<std::string, DoneFile>& files,
                std::map<std::string, std::string>& sent) {
  std::map<std::string, int64_t> found;
  for (const StoredObject& object : store.list(key)) {
    const std::string name = object.key.substr(key.size() + 1);
    found[name] = object.bytes;
    if (!files.contains(name) && name != "DONE") store.remove(object.key);
  }
  for (const auto& [name, file] : files) {
    const auto at = found.find(name);
    if (at != found.end() && at->second == file.bytes) continue;
    sent.erase(name);
    throw MachineError("{}/{}: {} there, expected {} bytes", key, name,
                       at == found.end() ? "nothing is" : with_commas(at->second) + " bytes are",
                       with_commas(file.bytes));
  }
}

}  // namespace

int64_t put_checkpoint(ObjectStore& store, int64_t step, const fs::path& folder,
                       std::map<std::string, std::string>& sent) {
  const std::string key = mirrored_checkpoint(step);
  const std::string done = read_file(folder / "DONE");
  const std::map<std::string, DoneFile> files = parse_done(done, folder.string());
  if (take_stock(store, key, done, files, sent)) return 0;
  int64_t bytes = 0;
  for (const auto& [name, file] : files) {
    if (sent[name] == file.sha256) continue;
    store.put(key + "/" + name, folder / name, file.sha256);
    sent[name] = file.sha256;
    bytes += file.bytes;
  }
  check_list(store, key, files, sent);
  put_text(store, key + "/DONE", done);
  return bytes;
}

std::vector<fs::path> mirrored_files(const RunFolder& folder) {
  std::vector<fs::path> out;
  std::error_code failed;
  const auto take = [&](const fs::path& below) {
    for (fs::directory_iterator at(folder.path() / below, failed), end; !failed && at != end;
         at.increment(failed)) {
      const fs::path name = at->path().filename();
      std::error_code gone;
      const bool passing = name == "lock" || name == "mirror.json" || name == kRunIdentity ||
                           name.string().starts_with('.') || name.extension() == ".part" ||
                           name.string().find(".tmp") != std::string::npos;
      if (!passing && at->is_regular_file(gone)) out.push_back(below / name);
    }
  };
  for (const char* below : {"", "times", "events", "logs", "trace"}) take(below);
  std::sort(out.begin(), out.end());
  return out;
}

bool put_run_file(ObjectStore& store, const RunFolder& folder, const fs::path& file,
                  const fs::path& aside) {
  std::error_code failed;
  fs::create_directories(aside, failed);
  const fs::path copy = aside / "file";
  fs::copy_file(folder.path() / file, copy, fs::copy_options::overwrite_existing, failed);
  if (failed && !fs::exists(folder.path() / file)) return false;
  if (failed) throw MachineError("{}: cannot be copied: {}", copy.string(), failed.message());
  const bool lines = file.extension() == ".jsonl" || file.extension() == ".csv";
  if (lines) {
    const std::string text = read_file(copy);
    const std::size_t last = text.rfind('\n');
    const std::size_t whole = last == std::string::npos ? 0 : last + 1;
    if (whole != text.size()) fs::resize_file(copy, whole);
  }
  store.put(file.string(), copy, sha256_of_file(copy));
  fs::remove(copy, failed);
  return true;
}

}  // namespace lockstep
