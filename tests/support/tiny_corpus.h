// A corpus of invented sentences that a tiny network learns in seconds: numbers in English words to
// German words.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "base/random.h"
#include "support/program.h"

namespace lockstep {

// Writes `pairs` aligned lines to FOLDER/text.en and text.de and prepares FOLDER/corpus.
inline void make_tiny_corpus(const fs::path& folder, int pairs = 600) {
  const std::array<const char*, 10> en = {"one", "two",   "three", "four", "five",
                                          "six", "seven", "eight", "nine", "ten"};
  const std::array<const char*, 10> de = {"eins",  "zwei",   "drei", "vier", "fünf",
                                          "sechs", "sieben", "acht", "neun", "zehn"};
  std::string source, target;
  for (int i = 0; i < pairs; ++i) {
    auto key = static_cast<uint64_t>(i);
    uint64_t words = 3 + random_below(key, 0, 8);
    for (uint64_t w = 1; w <= words; ++w) {
      uint64_t number = random_below(key, w, 10);
      source += std::string(w > 1 ? " " : "") + en[number];
      target += std::string(w > 1 ? " " : "") + de[number];
    }
    source += "\n";
    target += "\n";
  }
  write_file(folder / "text.en", source);
  write_file(folder / "text.de", target);
  ProgramResult prepared = run_lockstep(
      fmt::format("prepare text {0}/text.en {0}/text.de --out {0}/corpus --vocab 64 "
                  "--dev-size 30 --test-size 30 --near-copy 2",
                  folder.string()));
  ASSERT_EQ(prepared.exit_code, 0) << prepared.errors;
}

// A configuration that trains on it in a moment.
inline void write_tiny_config(const fs::path& folder) {
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
                         (folder / "corpus").string()));
}

}  // namespace lockstep
