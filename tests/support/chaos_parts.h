// Parts of tests/reliability/commands/chaos_test.cpp: what is trained, damage to checkpoints, and
// what two checkpoints differ in.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "formats/tensor_file.h"
#include "train/folder/checkpoint_folder.h"

namespace lockstep {

inline double number_of(const char* name, double otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atof(text);
}

// What is trained. Each is the same, bit for bit, however often it is killed.
struct Training {
  const char* name;
  const char* config;
  const char* words;
  bool goes_on_alone = false;   // without a host that stays away for some seconds
  bool stopping_shows = false;  // groups meet for a stop by a signal, or errors of a hook stay
};
inline constexpr Training kTrainings[] = {
    // Each host has half the shards and room for a third of the images: they move all the time.
    {"images", "images.toml", "model.width=8 images.cache_bytes=20480 evaluation.every=40"},
    {"plain", "tiny.toml", ""},
    {"sharded", "tiny.toml", "training.shard_optimizer=true training.average_decay=0.9"},
    {"parts", "tiny.toml", "batch.accumulate=2 run.precision=bf16 comm.hook=bf16"},
    {"elastic", "tiny.toml", "training.reproducible=any-ranks", true},
    {"local", "tiny.toml",
     "comm.strategy=diloco comm.local_steps=5 comm.local_after=5 comm.local_group=machine", false,
     true},
    {"powersgd", "tiny.toml",
     "comm.hook=powersgd comm.powersgd.start_step=10 comm.powersgd.min_compression=1", false, true},
};

// The one named by LOCKSTEP_CHAOS_TRAINING, else the seed's.
inline const Training& training_of(uint64_t seed) {
  const char* name = std::getenv("LOCKSTEP_CHAOS_TRAINING");
  if (name == nullptr || *name == '\0') return kTrainings[seed % std::size(kTrainings)];
  for (const Training& one : kTrainings) {
    if (one.name == std::string_view(name)) return one;
  }
  throw std::runtime_error(fmt::format("no training \"{}\"", name));
}

// Changes the weights' file of the newest checkpoint in a folder: it is cut short, or a bit flips.
inline void damage_newest(const fs::path& checkpoints, bool cuts_short) {
  const std::vector<fs::path> all = all_checkpoints(checkpoints);
  if (all.empty()) return;
  const fs::path file = all.front() / "weights.safetensors";
  if (cuts_short) {
    fs::resize_file(file, fs::file_size(file) / 2);
    return;
  }
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(static_cast<std::streamoff>(fs::file_size(file) - 100));
  char byte = 0;
  bytes.get(byte);
  bytes.seekp(-1, std::ios::cur);
  bytes.put(static_cast<char>(byte ^ 4));
}

// Returns which tensors of the two files are not equal, and by how much.
inline std::string differences(const fs::path& a, const fs::path& b) {
  const TensorFile one(a), other(b);
  std::string out;
  for (const TensorEntry& entry : one.entries()) {
    const TensorEntry* same = other.find(entry.name);
    if (same == nullptr || same->data.size() != entry.data.size()) {
      out += entry.name + ": not in both\n";
    } else if (std::memcmp(entry.data.data(), same->data.data(), entry.data.size()) != 0) {
      const auto* x = reinterpret_cast<const float*>(entry.data.data());
      const auto* y = reinterpret_cast<const float*>(same->data.data());
      double most = 0;
      int64_t count = 0;
      for (std::size_t i = 0; i < entry.data.size() / sizeof(float); ++i) {
        most = std::max<double>(most, std::abs(x[i] - y[i]));
        count += x[i] == y[i] ? 0 : 1;
      }
      out += fmt::format("{}: {} numbers, up to {:.3g}\n", entry.name, count, most);
    }
  }
  return out;
}

}  // namespace lockstep
