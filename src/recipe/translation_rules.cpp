#include "recipe/translation_rules.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr double kTrainingShare = 0.9;  // of the budget; the rest is for evaluation and start
constexpr int64_t kFewestSteps = 600;   // fewer steps do not justify the size of a network
constexpr int64_t kMostEpochs = 50;
constexpr int64_t kFewPairs = 60'000;  // twice as many as were measured
constexpr TransformerSize kTiny{128, 4, 4, 256}, kSmall{256, 4, 3, 1024}, kBase{512, 8, 6, 2048};

double seconds_of(const Budget& budget) { return kTrainingShare * 60 * budget.minutes; }

int64_t vocabulary_of(const TranslationFacts& facts) {
  return facts.vocabulary > 0 ? facts.vocabulary : choose_corpus(facts).vocabulary;
}

int64_t rounded(double value, int64_t to) {
  return std::max<int64_t>(1, std::llround(value / static_cast<double>(to))) * to;
}

double words_in_all(const TranslationFacts& facts) {
  return static_cast<double>(facts.pairs) * (facts.source_words + facts.target_words);
}

bool has_unspaced(const TranslationFacts& facts) {
  return is_unspaced(facts.source_words, facts.source_characters) ||
         is_unspaced(facts.target_words, facts.target_characters);
}

std::string times_text(double epochs) {
  return epochs < 10 ? fmt::format("{:.1f}", epochs) : fmt::format("{:.0f}", epochs);
}

std::string estimate_text(const TranslationLength& length, const TransformerSize& size,
                          int64_t vocabulary, const MachineFacts& machine) {
  std::string out =
      fmt::format("{} steps of {} target tokens see the pairs {} times.", with_commas(length.steps),
                  with_commas(length.tokens), times_text(length.epochs));
  if (machine.gpus > 0) {
    return out +
           fmt::format(" About {} by estimate: no GPU was measured for it; lockstep plan does.",
                       short_duration(length.seconds));
  }
  return out + fmt::format(
                   " About {} at {} target tokens/s: an estimate from the 6,067 of 7.1 million "
                   "weights measured on 2 cores of an AMD EPYC "
                   "(benchmarks/notes/2026-11-multi30k.md); {}, this "
                   "network has {} million weights. lockstep plan measures.",
                   short_duration(length.seconds),
                   short_number(translation_speed(size, vocabulary, machine)),
                   compared_to_yardstick(machine),
                   short_number(static_cast<double>(size.weights(vocabulary)) / 1e6));
}

}  // namespace

bool is_unspaced(double words, double characters) {
  return words > 0 && characters / words > 20;  // German with its compounds has about 6.5
}

// Most pieces should be seen some hundred times (Gowda and May 2020, "Finding the Optimal
// Vocabulary Size for Neural Machine Translation"). Here Multi30k has 0.67 million words and 6,000
// pieces, WMT16 more than 200 million words and 32,768 pieces: the root of the number of words fits
// both.
CorpusChoice choose_corpus(const TranslationFacts& facts) {
  CorpusChoice out;
  double words = words_in_all(facts);
  if (has_unspaced(facts)) {
    words =
        static_cast<double>(facts.pairs) * (facts.source_characters + facts.target_characters) / 4;
    out.character_coverage = 0.9995;  // SentencePiece's advice for large character sets
    out.ratio = 100;                  // words between spaces mean nothing there
    out.max_words = 200;
  } else if (facts.long_words > out.max_words) {
    out.max_words = std::min<int64_t>(250, facts.long_words);
  }
  const int64_t alphabet = facts.alphabet + 8;  // plus the special pieces
  // The vocabulary can have at most one piece per distinct word. Half of that leaves rare words in
  // parts.
  const int64_t possible = has_unspaced(facts) ? 32'000 : alphabet + facts.distinct_words / 2;
  const int64_t wanted = std::clamp<int64_t>(rounded(7.4 * std::sqrt(words), 500), 1000, 32'000);
  out.vocabulary = std::max(alphabet, std::min(wanted, possible));
  out.why = fmt::format(
      "prepare --vocab {} for {} words in all: many pieces are seen too rarely to be learned, few "
      "make long sentences (6,000 for Multi30k's 670,000 words, 32,768 for WMT's 200 million; "
      "Gowda "
      "and May 2020)",
      out.vocabulary, short_number(words));
  return out;
}

double target_pieces(const TranslationFacts& facts) {
  if (facts.target_pieces > 0) return static_cast<double>(facts.target_pieces);
  const bool unspaced = is_unspaced(facts.target_words, facts.target_characters);
  const double pieces = unspaced ? facts.target_characters / 1.6 : 1.35 * facts.target_words;
  return static_cast<double>(facts.pairs) * (1 + pieces);
}

TransformerChoice choose_transformer(const TranslationFacts& facts, const MachineFacts& machine,
                                     const Budget& budget) {
  const int64_t vocabulary = vocabulary_of(facts);
  const auto tokens = [&](const TransformerSize& size) {
    return seconds_of(budget) * translation_speed(size, vocabulary, machine);
  };
  const std::string pairs = with_commas(facts.pairs);
  constexpr int64_t kManyPairs = 300'000;
  if (facts.pairs >= kManyPairs && tokens(kBase) >= 50e6) {
    return {kBase, fmt::format("{} pairs and time for {} target tokens: Transformer-base (Vaswani "
                               "et al. 2017, table 3; configs/translation/transformer-base.toml)",
                               pairs, short_number(tokens(kBase)))};
  }
  if (facts.pairs < kFewPairs) {
    return {kTiny, fmt::format("{} pairs of {:.0f} words: a tiny network, as in configs/"
                               "translation/multi30k.toml, learned Multi30k's 29,000 three times "
                               "as fast as one of width 256, and better "
                               "(benchmarks/notes/2026-11-multi30k.md)",
                               pairs, facts.target_words)};
  }
  if (tokens(kSmall) < static_cast<double>(kFewestSteps) * 2048) {
    return {kTiny, fmt::format("{:g} minutes here are too few for width 256: half of it takes "
                               "{:.1g} times as many steps",
                               budget.minutes, tokens(kTiny) / tokens(kSmall))};
  }
  if (facts.pairs >= kManyPairs) {
    return {kSmall, fmt::format("{} pairs would feed Transformer-base (512, 8 heads, 6 + 6 layers, "
                                "2048), but {:g} minutes here show it only {} target tokens: a "
                                "small network learns more of them. --minutes 600, or a GPU",
                                pairs, budget.minutes, short_number(tokens(kBase)))};
  }
  return {kSmall, fmt::format("{} pairs of {:.0f} words: a small network; a large one learns such "
                              "a set by heart",
                              pairs, facts.target_words)};
}

TranslationLength choose_translation_length(const TranslationFacts& facts,
                                            const TransformerSize& size,
                                            const MachineFacts& machine, const Budget& budget) {
  const double epoch = target_pieces(facts);
  const bool base = size.d_model >= 512;
  TranslationLength out;
  out.tokens = base ? (facts.pairs >= 1'000'000 ? 25'000 : 8192) : 2048;
  // Cores that share a step each need enough work.
  while (!base && out.tokens < 8192 && static_cast<double>(out.tokens) < 256 * machine.cores) {
    out.tokens *= 2;
  }
  if (machine.gpus > 0) out.tokens = std::max<int64_t>(out.tokens, 8192);
  // For a small set, steps are so short that an epoch has at least forty of them.
  while (out.tokens > 512 && epoch / static_cast<double>(out.tokens) < 40) out.tokens /= 2;
  const double step_seconds =
      static_cast<double>(out.tokens) / translation_speed(size, vocabulary_of(facts), machine);
  const double possible = seconds_of(budget) / step_seconds;
  const double useful =
      std::max<double>(kFewestSteps, kMostEpochs * epoch / static_cast<double>(out.tokens));
  out.data_bound = useful < possible;
  const double steps = std::min(possible, useful);
  out.steps = std::max<int64_t>(20, rounded(steps, steps < 200 ? 10 : 50));
  out.warmup = std::clamp<int64_t>(rounded(0.22 * static_cast<double>(out.steps), 10), 10,
                                   base                 ? 4000
                                   : size.d_model < 256 ? 800
                                                        : 500);
  out.epochs = static_cast<double>(out.steps * out.tokens) / epoch;
  out.seconds = static_cast<double>(out.steps) * step_seconds;
  return out;
}

double choose_dropout(double epochs) { return epochs < 8 ? 0.1 : epochs < 30 ? 0.2 : 0.3; }

namespace {

void set_network(const TranslationFacts& facts, const TransformerChoice& network,
                 const TranslationLength& length, Recipe& recipe) {
  recipe.set("model.d_model", network.size.d_model, network.why + ".");
  recipe.set("model.heads", network.size.heads);
  recipe.set("model.encoder_layers", network.size.layers);
  recipe.set("model.decoder_layers", network.size.layers);
  recipe.set("model.feed_forward", network.size.feed_forward);
  recipe.set(
      "model.dropout", choose_dropout(length.epochs),
      fmt::format("The pairs are seen {} times: 0.1 below 8, 0.2 below 30, then 0.3 (the runs of "
                  "Multi30k in benchmarks/notes/2026-11-multi30k.md; Sennrich and Zhang 2019, for "
                  "small sets).",
                  times_text(length.epochs)));
  recipe.set("loss.label_smoothing", 0.1, "Vaswani et al. 2017, section 5.4.");
  recipe.set("batch.tokens", length.tokens,
             fmt::format(
                 "Target tokens of a step, all ranks together: {} steps an epoch. Halving "
                 "Multi30k's 2,048 changed little (benchmarks/notes/2026-11-multi30k.md).",
                 with_commas(std::max<int64_t>(
                     1, std::llround(target_pieces(facts) / static_cast<double>(length.tokens))))));
}

void set_training(const TransformerSize& size, const TranslationLength& length,
                  const std::string& estimate, const Budget& budget, Recipe& recipe) {
  const bool base = size.d_model >= 512;
  recipe.set("optimizer.name", "adam");
  recipe.set("optimizer.lr",
             base                  ? 7e-4
             : size.d_model == 256 ? 2e-3
                                   : 5e-3,
             base ? "The peak, as in configs/translation/transformer-base.toml."
                  : "The peak: 2e-3 for width 256, 5e-3 for 128, with a line down to 0 at the last "
                    "step, which made 34.2 BLEU of Multi30k in 1,350 steps where a slower decay "
                    "made 32.0 (benchmarks/notes/2026-11-multi30k.md).");
  recipe.set("schedule.name", "linear");
  recipe.set("schedule.warmup_steps", length.warmup);
  recipe.set("training.steps", length.steps,
             estimate + (length.data_bound
                             ? fmt::format(" More of the {:g} minutes would only teach the pairs "
                                           "by heart.",
                                           budget.minutes)
                             : fmt::format(" It is what fits into {:g} minutes.", budget.minutes)));
  const double horizon = std::max(10.0, 0.04 * static_cast<double>(length.steps));
  recipe.set("training.average_decay", std::round((1 - 1 / horizon) * 1e4) / 1e4,
             "The mean over about the last 4 % of the steps is what is evaluated and kept.");
}

void set_stop(const TranslationLength& length, const MachineFacts& machine, const Budget& budget,
              Recipe& recipe) {
  const double shared = machine.busy() ? 1 + machine.load / machine.cores : 1;
  recipe.set("training.minutes",
             std::ceil(2 * shared * std::max(budget.minutes, length.seconds / 60)),
             fmt::format("Twice that time{}: should the estimate be far off, it ends then all the "
                         "same.",
                         machine.busy() ? " beside the programs that are busy here now" : ""));
}

void set_evaluation(const TranslationFacts& facts, int64_t every, Recipe& recipe) {
  if (facts.vocabulary > 0 && facts.dev_pairs == 0) {
    recipe.set("evaluation.every", 0, "The corpus was prepared without a dev split.");
    return;
  }
  recipe.set("evaluation.every", every, "Five times, and what was best is kept.");
  if (facts.dev_pairs == 0 || facts.dev_pairs > 500) {
    recipe.set("evaluation.limit", 500,
               "Sentences of dev: enough to see it learn. lockstep evaluate takes all.");
  }
  if (has_unspaced(facts)) {
    recipe.set("evaluation.metrics", std::vector<std::string>{"chrf"},
               "BLEU counts words between spaces, which are none here; chrF counts characters.");
  }
}

}  // namespace

Recipe translation_recipe(const TranslationFacts& facts, const MachineFacts& machine,
                          const Budget& budget, const RunNames& names) {
  const int64_t vocabulary = vocabulary_of(facts);
  const TransformerChoice network = choose_transformer(facts, machine, budget);
  const TranslationLength length = choose_translation_length(facts, network.size, machine, budget);
  Recipe recipe;
  recipe.set("run.folder", names.run);
  recipe.set("task.name", "translation");
  recipe.set("data.corpus", names.data,
             facts.vocabulary > 0 ? "Prepared already." : choose_corpus(facts).why + ".");
  set_network(facts, network, length, recipe);
  set_training(network.size, length, estimate_text(length, network.size, vocabulary, machine),
               budget, recipe);
  set_stop(length, machine, budget, recipe);
  const double needed = transformer_bytes(network.size, vocabulary, length.tokens);
  if (2 * needed > static_cast<double>(machine.available_bytes) && machine.gpus == 0) {
    recipe.set("training.fit_memory", true,
               fmt::format("A step could need {}, of which {} are free: computed in parts.",
                           short_bytes(needed),
                           short_bytes(static_cast<double>(machine.available_bytes))));
  }
  const int64_t every = std::max<int64_t>(1, length.steps / 5);
  set_evaluation(facts, every, recipe);
  recipe.set("decoding.beam_size", 4);
  recipe.set("decoding.length_penalty", 1.0,
             "Greater for longer translations: try 0.6 to 1.4 on dev with lockstep evaluate.");
  recipe.set("checkpoint.every", every);
  return recipe;
}

namespace {

std::vector<std::string> prepare_words(const TranslationFacts& facts, const TranslationFiles& files,
                                       const RunNames& names) {
  const CorpusChoice corpus = choose_corpus(facts);
  std::vector<std::string> out{"lockstep", "prepare", "text"};
  const auto add_files = [&](const ParallelFiles& pair) {
    if (pair.taken) {
      out.push_back(pair.taken->file.string());
    } else {
      out.insert(out.end(), {pair.source.string(), pair.target.string()});
    }
  };
  add_files(files.train);
  const auto add = [&](std::initializer_list<std::string> words) { out.insert(out.end(), words); };
  const auto add_split = [&](const char* name, const std::optional<ParallelFiles>& split,
                             bool other_given) {
    if (split) {
      out.push_back(fmt::format("--{}", name));
      add_files(*split);
    } else if (other_given) {  // without both, prepare splits off both
      add({fmt::format("--{}-size", name), "1000"});
    }
  };
  add_split("dev", files.dev, files.test.has_value());
  add_split("test", files.test, files.dev.has_value());
  if (!files.columns.text.empty()) {
    add({"--source-column", files.columns.text, "--target-column", files.columns.pair});
  }
  add({"--vocab", std::to_string(corpus.vocabulary)});
  if (facts.source_language != "en") add({"--source-language", facts.source_language});
  if (facts.target_language != "de") add({"--target-language", facts.target_language});
  if (corpus.max_words != 80) add({"--max-words", std::to_string(corpus.max_words)});
  if (corpus.ratio != 9) add({"--ratio", fmt::format("{:g}", corpus.ratio)});
  if (corpus.character_coverage != 1) add({"--character-coverage", "0.9995"});
  add({"--out", names.data});
  return out;
}

}  // namespace

std::vector<std::string> translation_commands(const TranslationFacts& facts,
                                              const TranslationFiles& files,
                                              const RunNames& names) {
  const bool prepared = facts.vocabulary > 0;
  std::vector<std::string> out;
  if (!prepared) out.push_back(command_line(prepare_words(facts, files, names)));
  out.push_back("lockstep launch -n auto -- train " + command_line({names.config}));
  const bool has_test = !prepared || facts.test_pairs > 0;  // prepare splits one off
  out.push_back(
      command_line({"lockstep", "evaluate", names.run, "--split", has_test ? "test" : "dev"}));
  if (prepared) {
    out.push_back(
        command_line({"lockstep", "translate", names.run}) +
        fmt::format(" < lines.{0} > lines.{1}", facts.source_language, facts.target_language));
  }
  return out;
}

}  // namespace lockstep
