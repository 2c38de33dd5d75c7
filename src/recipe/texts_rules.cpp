#include "recipe/texts_rules.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr double kTextsShare = 0.9;  // of the budget; the rest is for evaluation and start
constexpr int64_t kEnglishPieces = 30'522, kMultilingualPieces = 119'547;
constexpr BertSize kMiniLmSize{6, 384, 22'700'000}, kBaseSize{12, 768, 109'500'000},
    kMultilingualSize{12, 768, 177'900'000};
constexpr const char* kOthers =
    "Smaller: hf:google/bert_uncased_L-2_H-128_A-2 (4 million weights); larger: "
    "hf:google-bert/bert-base-uncased (110 million, 5 to 8 times the time). prepare's --vocab and "
    "model.source must be the same.";

double texts_seconds(const Budget& budget) { return kTextsShare * 60 * budget.minutes; }

double epochs_of(const TextsFacts& facts, const BertSize& size, double tokens,
                 const MachineFacts& machine, const Budget& budget) {
  return texts_seconds(budget) * texts_speed(size, tokens, machine) /
         static_cast<double>(facts.texts);
}

// Estimates the mean length after cutting: few texts are longer than `longest`.
double mean_when_cut(const TextsFacts& facts, int64_t longest) {
  return std::min(facts.mean_tokens, 0.92 * static_cast<double>(longest));
}

// Small sets gain from more epochs (Mosbach et al. 2021). With 1,600 sentences of SST-2 the third
// epoch was the last that helped, all 6,920 are learned in two; 25,000 reviews reached 92.3 % after
// one.
int64_t most_text_epochs(const TextsFacts& facts) {
  return facts.texts < 2'000 ? 5 : facts.texts < 5'000 ? 3 : 2;
}

std::string times_seen(double epochs) {
  return epochs < 10 ? fmt::format("{:.1f}", epochs) : fmt::format("{:.0f}", epochs);
}

}  // namespace

BertSource choose_bert(const TextsFacts& facts, const MachineFacts& machine, const Budget& budget,
                       const ModelsAtHand& at_hand) {
  if (facts.prepared && facts.vocabulary == kMultilingualPieces) {
    return {kMultilingual, kMultilingualSize, 512, "The texts were prepared with its vocabulary."};
  }
  if (facts.prepared && facts.vocabulary != kEnglishPieces) {
    ConfigError error("prepared with a vocabulary of {} pieces: of which model is it?",
                      with_commas(facts.vocabulary));
    error.set_advice("--model FOLDER or --model hf:OWNER/NAME, whose vocabulary it is");
    throw error;
  }
  if (facts.other_letters > 0.005) {
    return {kMultilingual, kMultilingualSize, 512,
            fmt::format("{:.1f} % of the letters are not English ones: BERT of 104 languages. A "
                        "BERT of the texts' own language is usually better: name it here and as "
                        "--vocab.",
                        100 * facts.other_letters)};
  }
  if (at_hand.minilm_folder) {
    return {"minilm", kMiniLmSize, 512,
            std::string("MiniLM-L6, whose folder is here: 88 % on SST-2 after a minute on 2 "
                        "cores (benchmarks/notes/2026-11-bert.md). ") +
                kOthers};
  }
  const double tokens = mean_when_cut(facts, 128);
  const double base_epochs = epochs_of(facts, kBaseSize, tokens, machine, budget);
  const bool only_base = at_hand.base_cached && !at_hand.minilm_cached;
  if (base_epochs >= 3 || (only_base && base_epochs >= 1)) {
    return {kBertBase, kBaseSize, 512,
            fmt::format("BERT-base (Devlin et al. 2019), fetched once{}; {:g} minutes show it the "
                        "texts {} times. Smaller: {}, 5 to 8 times as fast.",
                        at_hand.base_cached ? " and in the hub's cache already" : "",
                        budget.minutes, times_seen(base_epochs), kMiniLm)};
  }
  return {
      kMiniLm, kMiniLmSize, 512,
      fmt::format(
          "MiniLM-L6 (23 million weights), fetched once{}: 88 % on SST-2 after a "
          "minute on 2 cores (benchmarks/notes/2026-11-bert.md); BERT-base would see the texts {} "
          "times in {:g} minutes. ",
          at_hand.minilm_cached ? " and in the hub's cache already" : "", times_seen(base_epochs),
          budget.minutes) +
          kOthers};
}

TextsLength choose_texts_length(const TextsFacts& facts, const BertSource& source,
                                const MachineFacts& machine, const Budget& budget) {
  TextsLength out;
  const int64_t needed = (facts.long_tokens + 31) / 32 * 32;
  out.longest = std::min(std::max<int64_t>(needed, 32), source.longest);
  const auto epochs_at = [&](int64_t longest) {
    return epochs_of(facts, source.size, mean_when_cut(facts, longest), machine, budget);
  };
  // Training on all texts cut short teaches more than training on some of them whole.
  while (!facts.prepared && out.longest > 128 && epochs_at(out.longest) < 1) {
    out.longest = std::max<int64_t>(128, out.longest / 2);
  }
  out.mean_tokens = mean_when_cut(facts, out.longest);
  const double speed = texts_speed(source.size, out.mean_tokens, machine);
  const double epochs =
      std::min(epochs_at(out.longest), static_cast<double>(most_text_epochs(facts)));
  out.batch = out.mean_tokens > 200 ? 16 : 32;
  const double texts = epochs * static_cast<double>(facts.texts);
  while (out.batch > 8 && texts / static_cast<double>(out.batch) < 100) out.batch /= 2;
  const int64_t an_epoch = (facts.texts + out.batch - 1) / out.batch;
  if (epochs >= 1) {
    out.epochs = static_cast<int64_t>(epochs);
    out.steps = out.epochs * an_epoch;
  } else {
    out.steps = std::max<int64_t>(20, std::llround(texts / static_cast<double>(out.batch)));
  }
  out.seconds = static_cast<double>(out.steps * out.batch) / speed;
  return out;
}

double choose_bert_lr(const BertSize& size, int64_t steps) {
  if (size.width > 384) return 3e-5;
  return steps < 600 ? 1e-4 : 5e-5;
}

std::vector<std::string> choose_text_metrics(const TextsFacts& facts) {
  if (facts.values()) return {"spearman", "pearson", "mse"};
  int64_t fewest = INT64_MAX, most = 0;
  for (const auto& [name, count] : facts.classes) {
    fewest = std::min(fewest, count);
    most = std::max(most, count);
  }
  if (most > 3 * fewest) return {"f1_macro", "accuracy"};
  if (facts.classes.size() == 2) return {"accuracy", "f1"};
  return {"accuracy", "f1_macro"};
}

namespace {

std::string duration_text(const TextsLength& length, const BertSource& source,
                          const MachineFacts& machine) {
  if (machine.gpus > 0) {
    return fmt::format("about {} by estimate: no GPU was measured for it; lockstep plan does.",
                       short_duration(length.seconds));
  }
  return fmt::format(
      "about {} at {:.3g} texts/s of {:.0f} tokens: an estimate from the 188 of SST-2 and 12 of "
      "IMDB that 2 cores of an AMD EPYC made with MiniLM (benchmarks/notes/2026-11-bert.md); {}. "
      "lockstep plan "
      "measures.",
      short_duration(length.seconds), texts_speed(source.size, length.mean_tokens, machine),
      length.mean_tokens, compared_to_yardstick(machine));
}

void set_text_training(const TextsFacts& facts, const TextsLength& length, const std::string& why,
                       const BertSource& source, Recipe& recipe) {
  recipe.set("optimizer.name", "adamw");
  recipe.set(
      "optimizer.lr", choose_bert_lr(source.size, length.steps),
      "The peak: 1e-4 for MiniLM as configs/text/sst2.toml, where two epochs at it were as good "
      "as three at 5e-5 (benchmarks/notes/2026-11-bert.md); 5e-5 in runs of 600 steps and more, "
      "as configs/text/imdb.toml; 3e-5 for BERT-base (Devlin et al. 2019, appendix A.3).");
  recipe.set("optimizer.beta2", 0.999);
  recipe.set("optimizer.epsilon", 1e-8);
  recipe.set("optimizer.weight_decay", 0.01, "Devlin et al. 2019, of matrices alone (see below).");
  recipe.set("schedule.name", "hf_linear");
  recipe.set("schedule.warmup_ratio", 0.06, "Liu et al. 2019 (RoBERTa), table 10.");
  if (length.epochs > 0) {
    const bool all = length.epochs >= most_text_epochs(facts);
    recipe.set("training.epochs", length.epochs,
               (all ? "More would teach the texts by heart; " : "What fits into the time; ") + why);
  } else {
    recipe.set("training.steps", length.steps,
               fmt::format("{} of the {} texts, what fits into the time; ",
                           with_commas(length.steps * length.batch), with_commas(facts.texts)) +
                   why);
  }
  recipe.set("training.clip_norm", 1.0);
  recipe.set("training.decay_vectors", false);
  if (facts.prepared && facts.validation == 0) {
    recipe.set("evaluation.every", 0, "The texts were prepared without a validation split.");
  } else if (length.epochs > 0) {
    recipe.set("evaluation.every_epochs", 1);
  } else {
    recipe.set("evaluation.every", std::max<int64_t>(1, (length.steps + 1) / 2));
  }
  std::vector<std::string> metrics = choose_text_metrics(facts);
  const bool uneven = metrics[0] == "f1_macro";
  recipe.set("evaluation.metrics", std::move(metrics),
             uneven ? "The largest class has more than 3 times the texts of the smallest: accuracy "
                      "alone would praise a model that never names the rare ones."
                    : "The first one says which checkpoint is kept.");
  if (facts.validation > 2'000) {
    recipe.set("evaluation.limit", 2'000, "lockstep evaluate takes all of them.");
  }
  recipe.set("checkpoint.every", 0, "One at the end, and the best.");
}

}  // namespace

Recipe texts_recipe(const TextsFacts& facts, const BertSource& source, const MachineFacts& machine,
                    const Budget& budget, const RunNames& names) {
  const TextsLength length = choose_texts_length(facts, source, machine, budget);
  Recipe recipe;
  recipe.set("run.folder", names.run);
  recipe.set("task.name", "text");
  recipe.set("texts.data", names.data,
             facts.prepared
                 ? "Prepared already."
                 : fmt::format("Texts are cut to {} tokens: 99 of 100 have at most {}{}.",
                               length.longest, facts.long_tokens,
                               length.longest * 10 < 9 * std::min<int64_t>(512, facts.long_tokens)
                                   ? fmt::format(", but whole ones would not all be seen in {:g} "
                                                 "minutes; the head of a text tells most (Sun et "
                                                 "al. 2019, section 5.3.1)",
                                                 budget.minutes)
                                   : ""));
  recipe.set("model.source", source.source, source.why);
  recipe.set("batch.examples", length.batch,
             "Texts of a step, all ranks together: 32 as configs/text/sst2.toml, 16 of long ones "
             "as imdb.toml, fewer where there would be less than a hundred steps.");
  set_text_training(facts, length, duration_text(length, source, machine), source, recipe);
  const double needed =
      bert_bytes(source.size, static_cast<double>(length.batch) * length.mean_tokens);
  if (2 * needed > static_cast<double>(machine.available_bytes) && machine.gpus == 0) {
    recipe.set("training.fit_memory", true,
               fmt::format("A step could need {}, of which {} are free: computed in parts.",
                           short_bytes(needed),
                           short_bytes(static_cast<double>(machine.available_bytes))));
  }
  return recipe;
}

std::vector<std::string> texts_commands(const TextsFacts& facts, const TextsCommandsInput& input,
                                        const RunNames& names) {
  std::vector<std::string> out;
  if (!facts.prepared) {
    std::vector<std::string> words{"lockstep", "prepare",
                                   "labelled", input.input.data.string(),
                                   "--vocab",  input.source.source};
    const auto add = [&](const char* option, const std::string& value) {
      if (!value.empty()) words.insert(words.end(), {option, value});
    };
    const TextColumns& named = input.input.columns;
    const bool say =
        input.reading.guessed || !named.text.empty() || !named.pair.empty() || !named.label.empty();
    if (say) {
      add("--text", input.reading.columns.text);
      add("--pair", input.reading.columns.pair);
      add("--label", input.reading.columns.label);
    }
    if (input.input.values) words.emplace_back("--regression");
    add("--classes", input.reading.classes_file);
    if (facts.empty > 0) add("--empty", "skip");
    if (facts.validation == 0) add("--hold-out", "0.1");
    if (input.longest != 512) add("--max-length", std::to_string(input.longest));
    add("--out", names.data);
    out.push_back(command_line(words));
  }
  out.push_back("lockstep launch -n auto -- train " + command_line({names.config}));
  std::vector<std::string> evaluate{"lockstep", "evaluate", names.run};
  if (facts.labelled_test) evaluate.insert(evaluate.end(), {"--split", "test"});
  if (!facts.values()) evaluate.emplace_back("--by-class");
  out.push_back(command_line(evaluate));
  if (facts.prepared) {
    out.push_back(command_line({"lockstep", "classify", names.run}) +
                  (facts.pairs ? " --pairs --file pairs.tsv" : " \"a text\""));
  }
  return out;
}

}  // namespace lockstep
