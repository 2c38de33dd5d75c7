// Makes a corpus of invented sentences that a tiny network learns in seconds: numbers in English
// words and in German words.
#pragma once

#include <array>
#include <string>

#include "base/random.h"
#include "support/program.h"

namespace lockstep {

// Writes `pairs` aligned lines to FOLDER/NAME.en and NAME.de; another `seed` gives other sentences.
inline void write_tiny_text(const fs::path& folder, const std::string& name, int pairs,
                            uint64_t seed) {
  const std::array<const char*, 10> en = {"one", "two",   "three", "four", "five",
                                          "six", "seven", "eight", "nine", "ten"};
  const std::array<const char*, 10> de = {"eins",  "zwei",   "drei", "vier", "fünf",
                                          "sechs", "sieben", "acht", "neun", "zehn"};
  std::string source, target;
  for (int i = 0; i < pairs; ++i) {
    uint64_t key = combine_keys(seed, static_cast<uint64_t>(i));
    uint64_t words = 3 + random_below(key, 0, 8);
    for (uint64_t w = 1; w <= words; ++w) {
      uint64_t number = random_below(key, w, 10);
      source += std::string(w > 1 ? " " : "") + en[number];
      target += std::string(w > 1 ? " " : "") + de[number];
    }
    source += "\n";
    target += "\n";
  }
  write_file(folder / (name + ".en"), source);
  write_file(folder / (name + ".de"), target);
}

// Prepares FOLDER/corpus. Returns the program's output when it failed, else an empty text.
inline std::string make_tiny_corpus(const fs::path& folder) {
  write_tiny_text(folder, "train", 600, 1);
  write_tiny_text(folder, "dev", 30, 2);
  write_tiny_text(folder, "test", 30, 3);
  ProgramResult prepared =
      run_lockstep(fmt::format("prepare text {0}/train.en {0}/train.de --dev {0}/dev.en {0}/dev.de "
                               "--test {0}/test.en {0}/test.de --out {0}/corpus --vocab 64",
                               folder.string()));
  return prepared.exit_code == 0 ? "" : prepared.errors + "failed";
}

// Writes a configuration that trains on the corpus in a moment. `corpus` is its path there; empty:
// FOLDER/corpus.
inline void write_tiny_config(const fs::path& folder, const std::string& corpus = "") {
  write_file(folder / "tiny.toml",
             fmt::format("[run]\nprecision = \"fp32\"\ndevice = \"cpu\"\n"
                         "[data]\ncorpus = \"{}\"\n"
                         "[model]\nd_model = 32\nheads = 2\nencoder_layers = 1\n"
                         "decoder_layers = 1\nfeed_forward = 64\n"
                         "[batch]\ntokens = 256\n"
                         "[optimizer]\nlr = 3e-3\n"
                         "[schedule]\nname = \"inverse_sqrt\"\nwarmup_steps = 20\n"
                         "[training]\nsteps = 20\n"
                         "[evaluation]\nevery = 0\n[checkpoint]\nevery = 0\n",
                         corpus.empty() ? (folder / "corpus").string() : corpus));
}

}  // namespace lockstep
